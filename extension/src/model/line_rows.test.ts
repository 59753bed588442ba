import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import type { DeviceContents } from "./device_contents.ts";
import { GrowingRecording } from "./growing_recording.ts";
import { lineRows, sumsByLine } from "./line_rows.ts";
import type { CallSite } from "./stacks.ts";

const FRAMES = [
  { name: "f", filename: "a.py", line: 7 },
  { name: "g", filename: "a.py", line: 9 },
  { name: "<lambda>", filename: "a.py", line: 9 },
];

function threeLines(): DeviceContents {
  const recording = new GrowingRecording();
  recording.append(
    tableOf("api_calls", {
      time: [1, 11, 31],
      end: [2, 12, 32],
      correlation: [1, 2, 3],
      stack: [1, 2, 3],
    }),
  );
  recording.append(
    tableOf("activities", {
      time: [10, 50, 80, 90],
      end: [20, 60, 90, 95],
      kind: ["kernel", "memcpy", "kernel", "memset"],
      bytes: [0, 400, 0, 1234],
      correlation: [1, 2, 3, 2],
    }),
  );
  recording.append(
    tableOf("idle_gaps", {
      time: [20, 60],
      end: [50, 80],
      stream: [0, 0],
      cause: ["host", "host"],
      activity: [1, 2],
    }),
  );
  const waits = { time: [45, 45], end: [65, 65], kind: ["memcpy", "memcpy"], stack: [2, 2] };
  recording.append(tableOf("host_waits", { ...waits, device: [-1, 1] }));
  const callSiteOf = (stack: number): CallSite => ({
    site: FRAMES[stack - 1]?.name ?? "",
    source: "",
  });
  const lineFrameOf = (stack: number): unknown => FRAMES[stack - 1];
  const stacks = { callSiteOf, lineFrameOf };
  return { ...recording.contentsOf(0), stacks } as unknown as DeviceContents;
}

test("a window counts the time in it, and the idle time that ends in it", () => {
  const sumsIn = (window: { fromNs: number; toNs: number } | undefined): unknown[] =>
    lineRows(threeLines(), window).map(({ callSite, sums }) => [
      callSite.site,
      sums.kernelNs,
      sums.copyNs,
      sums.copyBytes,
      sums.waitNs,
      sums.idleNs,
    ]);

  assert.deepEqual(sumsIn(undefined), [
    ["<lambda>", 10, 0, 0, 0, 20],
    ["f", 10, 0, 0, 0, 0],
    ["g", 0, 10, 400, 20, 30],
  ]);
  assert.deepEqual(sumsIn({ fromNs: 40, toNs: 55 }), [["g", 0, 5, 400, 10, 10]]);
  // A window begins before the first activity, and its idle time with it.
  assert.deepEqual(sumsIn({ fromNs: 4, toNs: 15 }), [["f", 5, 0, 0, 0, 6]]);
});

test("idle time belongs to the line that the host ran, where that is known", () => {
  const contents = threeLines();
  const piece = { device: [0, 1], time: [25, 25], end: [45, 45], activity: [1, 1] };
  contents.gpu.append(tableOf("host_work", { ...piece, text: ["works", "works"], stack: [1, 1] }));
  const idleIn = (window: { fromNs: number; toNs: number } | undefined): unknown[] =>
    lineRows(contents, window).map(({ callSite, sums }) => [callSite.site, sums.idleNs]);

  assert.deepEqual(idleIn(undefined), [
    ["<lambda>", 20],
    ["f", 20],
    ["g", 10],
  ]);
  assert.deepEqual(idleIn({ fromNs: 40, toNs: 55 }), [
    ["g", 5],
    ["f", 5],
  ]);
});

test("functions that share a line of a file add up in its source", () => {
  const sumsOf = sumsByLine(lineRows(threeLines(), undefined), "a.py");

  assert.deepEqual([sumsOf(9).kernelNs, sumsOf(9).copyNs, sumsOf(7).kernelCount], [10, 10, 1]);
  assert.equal(sumsOf(8).kernelNs, 0);
});
