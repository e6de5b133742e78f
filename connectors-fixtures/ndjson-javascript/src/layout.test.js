import assert from "node:assert/strict";
import { test } from "node:test";

import { readStaged } from "./layout.js";

test("what an earlier session left tells which it was", () => {
  const fence = { epoch: 3, session: 41 };
  for (const [name, want] of [
    ["0000000003-0000000041-000009-80000000.orders.staged", { fence, begin: 0x80000000 }],
    ["80000000-ffffffff.fence.3.41", { fence, begin: 0x80000000 }],
    ["80000000-ffffffff.fence", null],
    ["notes.txt", null],
  ]) {
    assert.deepEqual(readStaged(name), want, name);
  }
});
