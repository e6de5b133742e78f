// Tuples in FoundationDB's encoding, as JSON texts: numbers keep every digit.
//
// An interpreter runs this for each document. So there are no views, callbacks or
// iterators but where there must be.
import { Failure } from "./failure.js";

const NULL = 0x00;
const BYTES = 0x01;
const TEXT = 0x02;
const NEGATIVE = 0x0b;
const ZERO = 0x14;
const POSITIVE = 0x1d;
const DOUBLE = 0x21;
const FALSE = 0x26;
const TRUE = 0x27;

// In a text, a zero byte is followed by this.
const ESCAPE = 0xff;

// The longest integers that fit into a double.
const SAFE_BYTES = 6;

const decoder = new TextDecoder("utf-8", { fatal: true });
const eight = new Uint8Array(8);
const view = new DataView(eight.buffer);

// Appends the elements of a tuple, each as JSON text on one line.
export function elements(tuple, texts = []) {
  const reader = new Reader(tuple);
  while (reader.at < tuple.length) texts.push(reader.element());
  return texts;
}

class Reader {
  constructor(tuple) {
    this.tuple = tuple;
    this.at = 0;
  }

  element() {
    const code = this.tuple[this.at];
    this.at += 1;
    if (NEGATIVE < code && code < POSITIVE) return this.integer(Math.abs(code - ZERO), code < ZERO);
    switch (code) {
      case NULL:
        return "null";
      case FALSE:
        return "false";
      case TRUE:
        return "true";
      case BYTES:
        // JSON text already: an array, an object, or a number beyond integers and doubles.
        return this.text().replace(/[\r\n]/g, " ");
      case TEXT:
        return JSON.stringify(this.text());
      case DOUBLE:
        return this.double();
      case NEGATIVE:
        return this.integer(this.tuple[this.take(1)] ^ 0xff, true);
      case POSITIVE:
        return this.integer(this.tuple[this.take(1)], false);
    }
    this.at -= 1;
    throw this.malformed(`there is no element of code ${code}`);
  }

  // Integers are big-endian; of a negative one, the complement of its magnitude.
  integer(length, negative) {
    const start = this.take(length);
    const flip = negative ? 0xff : 0;
    if (length <= SAFE_BYTES) {
      let magnitude = 0;
      for (let at = start; at < this.at; at += 1) magnitude = magnitude * 256 + (this.tuple[at] ^ flip);
      return String(negative ? -magnitude : magnitude);
    }
    let digits = "0x";
    for (let at = start; at < this.at; at += 1) digits += (this.tuple[at] ^ flip).toString(16).padStart(2, "0");
    return String(negative ? -BigInt(digits) : BigInt(digits));
  }

  // Doubles are ordered as bytes: positive ones have the sign bit set, of negative ones
  // every bit is the other way.
  double() {
    const start = this.take(8);
    const negative = this.tuple[start] < 0x80;
    for (let index = 0; index < 8; index += 1) eight[index] = this.tuple[start + index] ^ (negative ? 0xff : 0);
    if (!negative) eight[0] ^= 0x80;
    const value = view.getFloat64(0);
    return Object.is(value, -0) ? "-0.0" : String(value);
  }

  // Decodes the bytes up to the zero byte that ends them.
  text() {
    const start = this.at;
    let end = this.tuple.indexOf(NULL, start);
    const zeros = [];
    while (end !== -1 && this.tuple[end + 1] === ESCAPE) {
      zeros.push(end + 1 - start);
      end = this.tuple.indexOf(NULL, end + 2);
    }
    if (end === -1) throw this.malformed("it has no end");
    this.at = end + 1;
    const bytes = this.tuple.subarray(start, end);
    if (zeros.length === 0) return decoder.decode(bytes);
    const escapes = new Set(zeros);
    return decoder.decode(bytes.filter((_, index) => !escapes.has(index)));
  }

  // Goes past the next bytes; returns where they start.
  take(length) {
    const start = this.at;
    if (start + length > this.tuple.length) throw this.malformed("it reaches past the end");
    this.at += length;
    return start;
  }

  malformed(reason) {
    const message = `a tuple of ${this.tuple.length} bytes is malformed at byte ${this.at}: ${reason}`;
    return new Failure("internal", message);
  }
}
