// The order of calls that the protocol allows.
//
//   closed -open-> opened -load-> .. -flush-> flushing -store-> storing -start-commit-> committing
//                    |                                                                    |  load
//                    +-acknowledge of a recovery-> loading <-----------acknowledge--------+
//
// A transaction may go without a flush, and one that has nothing to store without a
// store. A call that failed ends the session.
import { Failure } from "./failure.js";

const TRANSACTION = { flush: "flushing", store: "storing", "start-commit": "committing" };

// Where a call leads, from where the instance is.
const NEXT = {
  closed: { validate: "closed", apply: "closed", open: "opened" },
  opened: { load: "opened", "acknowledge of a recovery": "loading", ...TRANSACTION },
  loading: { load: "loading", ...TRANSACTION },
  flushing: TRANSACTION,
  storing: { store: "storing", "start-commit": "committing" },
  committing: { load: "committing", acknowledge: "loading" },
  failed: {},
};

const REASON = {
  closed: "no session is open",
  failed: "that call failed, which ended the session",
  committing: "the transaction is not acknowledged yet",
};

// Follows the calls of one instance.
export class Order {
  constructor() {
    this.phase = "closed";
    this.last = undefined;
  }

  // Makes a call if it is its turn.
  run(call, make) {
    try {
      this.enter(call);
      return make();
    } catch (error) {
      if (this.phase !== "closed") this.phase = "failed";
      throw error;
    }
  }

  enter(call) {
    const last = this.last;
    const next = NEXT[this.phase][call];
    this.last = call;
    if (next === undefined) {
      const place = last === undefined ? "the first call" : `called after ${last}`;
      const reason = REASON[this.phase] ?? "the protocol has them in another order";
      throw new Failure("internal", `${call} was ${place}: ${reason}`);
    }
    this.phase = next;
  }
}

// Names the call that an acknowledge-request makes.
export const acknowledgeCall = (request) =>
  request.recovery === true ? "acknowledge of a recovery" : "acknowledge";
