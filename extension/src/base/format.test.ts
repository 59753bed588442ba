import assert from "node:assert/strict";
import { test } from "node:test";

import {
  counted,
  formatBytes,
  formatCount,
  formatDuration,
  formatExactBytes,
  formatShare,
  formatTime,
} from "./format.ts";

test("bytes are written in binary units with three digits", () => {
  assert.equal(formatBytes(0), "0 B");
  assert.equal(formatBytes(1023), "1023 B");
  assert.equal(formatBytes(1.5 * 1024 ** 2), "1.50 MiB");
  assert.equal(formatBytes(12.34 * 1024), "12.3 KiB");
  assert.equal(formatBytes(80 * 1024 ** 3), "80.0 GiB");
  assert.equal(formatBytes(2176 * 1024 ** 2), "2.13 GiB");
  assert.equal(formatBytes(-2048), "-2.00 KiB");
  assert.equal(formatBytes(1024 ** 2 - 1), "1.00 MiB");
  assert.equal(formatBytes(9.999 * 1024), "10.0 KiB");
  assert.equal(formatExactBytes(1572864), "1.50 MiB (1,572,864 B)");
});

test("durations take the unit that fits them", () => {
  assert.equal(formatDuration(7), "7 ns");
  assert.equal(formatDuration(999), "999 ns");
  assert.equal(formatDuration(999_600), "1.00 ms");
  assert.equal(formatDuration(12345), "12.3 µs");
  assert.equal(formatDuration(1.5e9), "1.50 s");
  assert.equal(formatDuration(1_125_000_000), "1.13 s");
  assert.equal(formatDuration(62_500_000_000), "1 min 03 s");
  assert.equal(formatDuration(125e9), "2 min 05 s");
  assert.equal(formatDuration(3725e9), "1 h 02 min 05 s");
});

test("a point in time has the digits that its resolution needs", () => {
  assert.equal(formatTime(1_234_567_890, 1e6), "1.235 s");
  assert.equal(formatTime(1_234_567_890, 1), "1.234567890 s");
  assert.equal(formatTime(1500, 100), "1.5 µs");
});

test("counts have their thousands apart", () => {
  assert.equal(formatCount(1234567), "1,234,567");
  assert.equal(formatCount(999), "999");
});

test("a late point in time is told as on a clock", () => {
  assert.equal(formatTime(119e9, 1e9), "119 s");
  assert.equal(formatTime(125e9, 1e9), "2:05 min");
  assert.equal(formatTime(125.25e9, 1e8), "2:05.3 min");
  assert.equal(formatTime(3725e9, 60e9), "1:02:05 h");
  assert.equal(formatTime(3599.96e9, 1e8), "1:00:00.0 h");
});

test("one has no plural", () => {
  assert.equal(counted(1, "block"), "1 block");
  assert.equal(counted(0, "block"), "0 blocks");
  assert.equal(counted(1234, "block"), "1,234 blocks");
});

test("a share is a percentage without an exponent", () => {
  assert.deepEqual([0, 0.0042, 0.123, 0.999, 4].map(formatShare), [
    "0 %",
    "0.4 %",
    "12 %",
    "100 %",
    "400 %",
  ]);
});
