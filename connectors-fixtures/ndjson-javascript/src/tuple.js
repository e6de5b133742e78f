// Tuples in FoundationDB's encoding, as JSON texts: numbers keep every digit.
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

const decoder = new TextDecoder("utf-8", { fatal: true });

// Returns the elements of a tuple, each as JSON text.
export function elements(tuple) {
  const texts = [];
  for (let at = 0; at < tuple.length; ) {
    const [text, end] = element(tuple, at);
    texts.push(text);
    at = end;
  }
  return texts;
}

function element(tuple, at) {
  const code = tuple[at];
  switch (code) {
    case NULL:
      return ["null", at + 1];
    case FALSE:
      return ["false", at + 1];
    case TRUE:
      return ["true", at + 1];
    case BYTES: {
      // JSON text already: an array, an object, or a number beyond integers and doubles.
      const [bytes, end] = unescape(tuple, at + 1);
      return [decoder.decode(bytes), end];
    }
    case TEXT: {
      const [bytes, end] = unescape(tuple, at + 1);
      return [JSON.stringify(decoder.decode(bytes)), end];
    }
    case DOUBLE:
      return [double(part(tuple, at + 1, 8)), at + 9];
    case NEGATIVE: {
      const [length] = part(tuple, at + 1, 1);
      return [integer(part(tuple, at + 2, length ^ 0xff), true), at + 2 + (length ^ 0xff)];
    }
    case POSITIVE: {
      const [length] = part(tuple, at + 1, 1);
      return [integer(part(tuple, at + 2, length), false), at + 2 + length];
    }
  }
  if (NEGATIVE < code && code < POSITIVE) {
    const length = Math.abs(code - ZERO);
    return [integer(part(tuple, at + 1, length), code < ZERO), at + 1 + length];
  }
  throw malformed(tuple, at, `there is no element of code ${code}`);
}

// Integers are big-endian; of a negative one, the complement of its magnitude.
function integer(bytes, negative) {
  const digits = Array.from(bytes, (byte) => (negative ? byte ^ 0xff : byte).toString(16).padStart(2, "0"));
  const magnitude = digits.length === 0 ? 0n : BigInt(`0x${digits.join("")}`);
  return String(negative ? -magnitude : magnitude);
}

// Doubles are ordered as bytes: positive ones have the sign bit set, of negative ones
// every bit is the other way.
function double(bytes) {
  const negative = bytes[0] < 0x80;
  const bits = Uint8Array.from(bytes, (byte, index) => (negative ? ~byte : index === 0 ? byte ^ 0x80 : byte));
  const value = new DataView(bits.buffer).getFloat64(0);
  return Object.is(value, -0) ? "-0.0" : String(value);
}

// Returns the bytes up to the zero byte that ends them, and where that is over.
function unescape(tuple, start) {
  let end = tuple.indexOf(NULL, start);
  if (end === -1) throw malformed(tuple, start, "it has no end");
  if (tuple[end + 1] !== ESCAPE) return [tuple.subarray(start, end), end + 1];
  const bytes = [];
  for (let at = start; at < tuple.length; at += 1) {
    if (tuple[at] !== NULL) {
      bytes.push(tuple[at]);
    } else if (tuple[at + 1] === ESCAPE) {
      bytes.push(NULL);
      at += 1;
    } else {
      return [Uint8Array.from(bytes), at + 1];
    }
  }
  throw malformed(tuple, start, "it has no end");
}

function part(tuple, start, length) {
  if (start + length > tuple.length) throw malformed(tuple, start, "it reaches past the end");
  return tuple.subarray(start, start + length);
}

const malformed = (tuple, at, reason) =>
  new Failure("internal", `a tuple of ${tuple.length} bytes is malformed at byte ${at}: ${reason}`);
