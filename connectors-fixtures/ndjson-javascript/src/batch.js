// Packed batches: `[klen][vlen][dlen][flags]`, key tuple, values tuple, document.
import { Failure } from "./failure.js";

const HEADER = 16;

// The key exists, delete it: there are no more flags.
const FLAGS = 1 | 2;

// Where a document is in its batch. Its parts are views, made when they are asked
// for: nothing is copied, and most stores need one of the three.
class Store {
  constructor(batch, key, values, document, end) {
    this.batch = batch;
    this.starts = { key, values, document, end };
  }

  get key() {
    return this.batch.subarray(this.starts.key, this.starts.values);
  }

  get values() {
    return this.batch.subarray(this.starts.values, this.starts.document);
  }

  get document() {
    return this.batch.subarray(this.starts.document, this.starts.end);
  }
}

// Returns the documents of a store batch.
export function stores(batch) {
  const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
  const found = [];
  for (let at = 0; at < batch.length; ) {
    const key = at + HEADER;
    if (key > batch.length) throw malformed(batch, at, CUT_OFF);
    const values = key + view.getUint32(at, true);
    const document = values + view.getUint32(at + 4, true);
    const end = document + view.getUint32(at + 8, true);
    if (end > batch.length) throw malformed(batch, at, CUT_OFF);
    const flags = view.getUint32(at + 12, true);
    if (flags & ~FLAGS) throw malformed(batch, at, `its flags are ${flags}, and only 1 and 2 are known`);
    found.push(new Store(batch, key, values, document, end));
    at = end;
  }
  return found;
}

const CUT_OFF = "it is cut off";

const malformed = (batch, at, reason) =>
  new Failure("internal", `the store batch is malformed at byte ${at} of ${batch.length}: ${reason}`);
