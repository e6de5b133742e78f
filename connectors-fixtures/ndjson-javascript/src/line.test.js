// npm test
import assert from "node:assert/strict";
import { test } from "node:test";

import { stores } from "./batch.js";
import { lines } from "./line.js";
import { elements } from "./tuple.js";

const bytes = (hex) => Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"));

// As the crate foundationdb-tuple, which the host uses, writes them.
const CASES = [
  ["00", "null"],
  ["26", "false"],
  ["27", "true"],
  ["14", "0"],
  ["15 01", "1"],
  ["13 fe", "-1"],
  ["16 0100", "256"],
  ["12 feff", "-256"],
  ["1c 7fffffffffffffff", "9223372036854775807"],
  ["0c 7fffffffffffffff", "-9223372036854775808"],
  ["1c ffffffffffffffff", "18446744073709551615"],
  ["1d 09 010000000000000000", "18446744073709551616"],
  ["0b f6 feffffffffffffffff", "-18446744073709551616"],
  ["21 bfe0000000000000", "0.5"],
  ["21 401fffffffffffff", "-0.5"],
  ["21 8000000000000000", "0"],
  ["21 7fffffffffffffff", "-0.0"],
  ["21 c415af1d78b58c40", "100000000000000000000"],
  ["21 fe37e43c8800759c", "1e+300"],
  ["02 00", '""'],
  ["02 61 00ff 62 00", '"a\\u0000b"'],
  ["02 c3a9 22 0a 00", '"é\\"\\n"'],
  ["01 5b312c20325d 00", "[1, 2]"],
  ["01 302e31303030303030303030303030303030303030303031 00", "0.1000000000000000000001"],
];

test("elements are exact JSON texts, alone and in a row", () => {
  for (const [hex, want] of CASES) assert.deepEqual(elements(bytes(hex)), [want], hex);
  const row = CASES.map(([hex]) => hex).join("");
  assert.deepEqual(elements(bytes(row)), CASES.map(([, want]) => want));
});

test("a tuple that is cut off or unknown is an error, with its place", () => {
  for (const hex of ["02 61", "21 00", "1c ff", "1d", "0b f6 00", "02 00ff", "ff", "05"]) {
    assert.throws(() => elements(bytes(hex)), /malformed at byte/, hex);
  }
});

const store = (key, values, document) => {
  const parts = [bytes(key), bytes(values), Buffer.from(document)];
  const head = new DataView(new ArrayBuffer(16));
  parts.forEach((part, index) => head.setUint32(4 * index, part.length, true));
  return Buffer.concat([Buffer.from(head.buffer), ...parts]);
};

const key = [{ field: "id" }];
const values = [{ field: 'a "b"' }];

test("a line is the document, on one line", () => {
  const batch = Buffer.concat([store("1501", "00", '{"id":1}'), store("1502", "00", '{\r\n"id": 2 }')]);
  const text = lines({ key, values, document: "flow_document" }, stores(batch));
  assert.equal(Buffer.from(text).toString(), '{"id":1}\n{  "id": 2 }\n');
});

test("without the document a line has the selected fields", () => {
  const batch = Buffer.concat([store("1501", "00", "{}"), store("1502", "27", "{}")]);
  const text = lines({ key, values }, stores(batch));
  assert.equal(Buffer.from(text).toString(), '{"id":1,"a \\"b\\"":null}\n{"id":2,"a \\"b\\"":true}\n');
  assert.throws(() => lines({ key, values: [] }, stores(batch)), /2 values were stored/);
});

test("a batch that is cut off is an error", () => {
  const whole = store("1501", "00", '{"id":1}');
  for (let length = 1; length < whole.length; length += 1) {
    assert.throws(() => stores(whole.subarray(0, length)), /malformed at byte 0/);
  }
});

test("flags that are not known are an error", () => {
  const first = store("1501", "00", "{}");
  const flagged = (flags) => {
    const batch = Buffer.concat([first, store("1502", "00", "{}")]);
    batch.writeUInt32LE(flags, first.length + 12);
    return stores(batch);
  };
  for (const flags of [0, 1, 2, 3]) assert.equal(flagged(flags).length, 2);
  for (const flags of [4, 0xff000000, 0xffffffff]) {
    assert.throws(() => flagged(flags), new RegExp(`malformed at byte ${first.length} .* flags are ${flags},`));
  }
});
