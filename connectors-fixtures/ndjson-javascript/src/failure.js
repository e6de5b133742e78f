// The protocol's errors, thrown.

// An error that the host gets as a value: what the bindings look for is `payload`.
export class Failure extends Error {
  constructor(kind, message) {
    super(message);
    this.payload = { kind, message, binding: undefined, key: undefined, field: undefined };
  }

  // Names the binding or field that the error is about.
  at(place) {
    Object.assign(this.payload, place);
    return this;
  }

  // Runs something that is about a place.
  static within(place, run) {
    try {
      return run();
    } catch (error) {
      throw error instanceof Failure ? error.at(place) : error;
    }
  }
}
