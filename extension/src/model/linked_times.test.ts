import assert from "node:assert/strict";
import { test } from "node:test";

import { otherTime, type Anchor } from "./linked_times.ts";

const ANCHORS: readonly Anchor[] = [
  [100, 1000],
  [200, 1400],
  [300, 1500],
];

test("an anchor is the same moment on both sides", () => {
  for (const [before, after] of ANCHORS) {
    assert.equal(otherTime(ANCHORS, 0, before), after);
    assert.equal(otherTime(ANCHORS, 1, after), before);
  }
});

test("between anchors time passes evenly, and beyond them as fast as there", () => {
  assert.equal(otherTime(ANCHORS, 0, 150), 1200);
  assert.equal(otherTime(ANCHORS, 0, 40), 940);
  assert.equal(otherTime(ANCHORS, 0, 360), 1560);
});

test("there and back is where it began", () => {
  for (let time = 0; time < 400; time += 7) {
    const back = otherTime(ANCHORS, 1, otherTime(ANCHORS, 0, time));
    assert.ok(Math.abs(back - time) < 1e-9);
  }
});

test("one anchor shifts all times, and none leaves them", () => {
  assert.equal(otherTime([[5, 50]], 0, 10), 55);
  assert.equal(otherTime([], 0, 10), 10);
});
