// Packed batches: `[klen][vlen][dlen][flags]`, key tuple, values tuple, document.
import { Failure } from "./failure.js";

const HEADER = 16;

// Returns the documents of a store batch. The parts are views: nothing is copied.
export function stores(batch) {
  const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
  const found = [];
  for (let at = 0; at < batch.length; ) {
    const header = at;
    const length = (index) => view.getUint32(header + 4 * index, true);
    let end = at + HEADER;
    if (end <= batch.length) end += length(0) + length(1) + length(2);
    if (end > batch.length) {
      throw new Failure("internal", `the store batch is malformed at byte ${at} of ${batch.length}`);
    }
    const values = at + HEADER + length(0);
    const document = values + length(1);
    found.push({
      key: batch.subarray(at + HEADER, values),
      values: batch.subarray(values, document),
      document: batch.subarray(document, end),
    });
    at = end;
  }
  return found;
}
