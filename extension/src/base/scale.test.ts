import assert from "node:assert/strict";
import { test } from "node:test";

import { binaryTicks, clockTicks, decimalTicks, fromPixel, toPixel } from "./scale.ts";

test("a pixel maps back to the value it came from", () => {
  const scale = { from: 10, to: 30, fromPx: 100, toPx: 500 };

  assert.equal(toPixel(scale, 15), 200);
  assert.equal(fromPixel(scale, 200), 15);
});

test("byte ticks are multiples of a power of two inside the range", () => {
  assert.deepEqual(binaryTicks(0, 10 * 1024, 5), [0, 2048, 4096, 6144, 8192, 10240]);
});

test("time ticks are round and stay inside the range", () => {
  assert.deepEqual(decimalTicks(0.9e9, 3.1e9, 3), [1e9, 2e9, 3e9]);
});

test("ticks of hours are those of a clock", () => {
  const hours = clockTicks(0, 5 * 3600e9, 10).map((ns) => ns / 60e9);

  assert.deepEqual(hours, [0, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300]);
  assert.deepEqual(clockTicks(200e9, 200.4e9, 4), [200e9, 200.1e9, 200.2e9, 200.3e9, 200.4e9]);
});

test("ticks of a month are days", () => {
  const days = clockTicks(0, 30 * 86_400e9, 9).map((ns) => ns / 86_400e9);

  assert.deepEqual(days, [0, 5, 10, 15, 20, 25, 30]);
});
