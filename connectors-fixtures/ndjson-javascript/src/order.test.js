import assert from "node:assert/strict";
import { test } from "node:test";

import { Order, acknowledgeCall } from "./order.js";

const RECOVER = acknowledgeCall({ recovery: true });

function run(calls) {
  const order = new Order();
  for (const call of calls) order.run(call, () => {});
}

test("calls in order are made", () => {
  for (const calls of [
    ["validate", "apply", "apply", "open"],
    ["open", RECOVER, "load", "flush", "flush", "store", "store", "start-commit", "acknowledge"],
    ["open", "load", RECOVER, "load", "flush", "start-commit", "load", "acknowledge", "load"],
    ["open", "store", "start-commit", "acknowledge", "start-commit", "acknowledge"],
  ]) {
    run(calls);
  }
});

test("every other order is refused at its last call", () => {
  for (const [before, wrong] of [
    [[], "flush"],
    [[], "store"],
    [[], "acknowledge"],
    [["open"], "open"],
    [["open"], "validate"],
    [["open"], "acknowledge"],
    [["open", RECOVER], RECOVER],
    [["open", "flush"], "load"],
    [["open", "store"], "load"],
    [["open", "store"], "flush"],
    [["open", "store"], "acknowledge"],
    [["open", "start-commit"], "store"],
    [["open", "start-commit"], "flush"],
    [["open", "start-commit"], "start-commit"],
    [["open", "start-commit"], RECOVER],
    [["open", "start-commit", "acknowledge"], "acknowledge"],
  ]) {
    run(before);
    const refused = (error) => error.payload.kind === "internal" && error.message.startsWith(`${wrong} was `);
    assert.throws(() => run([...before, wrong]), refused, `${wrong} after ${before}`);
  }
});

test("a violation names both calls, and why", () => {
  assert.throws(() => run(["store"]), /^Error: store was the first call: no session is open$/);
  assert.throws(() => run(["open", "start-commit", "store"]), /store was called after start-commit: the transaction is not/);
  assert.throws(() => run(["open", "flush", "load"]), /load was called after flush: the protocol has them in another order/);
});

test("a call that failed ends the session, and before a session nothing", () => {
  const order = new Order();
  const fail = () => {
    throw new Error("failed");
  };
  assert.throws(() => order.run("apply", fail), /failed/);
  order.run("open", () => {});
  assert.throws(() => order.run("store", fail), /failed/);
  assert.throws(() => order.run("start-commit", () => {}), /start-commit was called after store: that call failed/);
});
