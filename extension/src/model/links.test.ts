import { Action } from "../wire/codes.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import { DeviceTimeline } from "./device_timeline.ts";
import { Links } from "./links.ts";
import { eventsOf } from "../../testing/random_program.ts";
import { SpanKind } from "./span_kinds.ts";
import { Stacks } from "./stacks.ts";
import { tableOf } from "../../testing/table_of.ts";
import { GpuActivities } from "./gpu_activities.ts";

/** Two blocks at one address, one after the other, and one at another. */
const EVENTS = eventsOf([
  { timeNs: 0, action: Action.alloc, address: 4096, size: 512 },
  { timeNs: 10, action: Action.alloc, address: 8192, size: 512 },
  { timeNs: 100, action: Action.free_completed, address: 4096, size: 512 },
  { timeNs: 110, action: Action.alloc, address: 4096, size: 512 },
]);

function workOf(): GpuActivities {
  const gpu = new GpuActivities();
  gpu.append(
    tableOf("activities", {
      time: [50, 300, 320],
      end: [60, 310, 330],
      kind: ["kernel", "kernel", "memset"],
      correlation: [1, 2, 3],
    }),
  );
  gpu.append(
    tableOf("launch_blocks", {
      correlation: [1, 1, 2, 2, 3],
      block: [4096, 8192, 4096, 4096, 4096],
      mode: ["read", "unknown", "read", "write", "write"],
    }),
  );
  // The last one was in a block of another device.
  gpu.append(tableOf("accessed_blocks", { device: [0, 0, 0, 0, 1], event: [0, 1, 0, 0, 3] }));
  gpu.append(
    tableOf("api_calls", {
      time: [20, 90, 120],
      end: [25, 95, 125],
      correlation: [1, 2, 3],
      thread: [7, 7, 8],
    }),
  );
  gpu.append(tableOf("ranges", { id: [1], time: [85], end: [130], kind: ["range"], thread: [7] }));
  return gpu;
}

function linksOf(timeline: DeviceTimeline, gpu: GpuActivities, stacks = new Stacks()): Links {
  return new Links({ timeline, gpu, stacks, device: 0 });
}

test("a launch touched the blocks of the device that Python found", () => {
  const links = linksOf(new DeviceTimeline(EVENTS, 400), workOf());

  assert.deepEqual(links.blocksOf(0), [
    { row: 0, access: "read" },
    { row: 1, access: "unknown" },
  ]);
  assert.deepEqual(links.blocksOf(1), [{ row: 0, access: "read and write" }]);
  assert.deepEqual(links.launchesOf(0), [
    { row: 0, access: "read" },
    { row: 1, access: "read and write" },
  ]);
  assert.deepEqual([links.blocksOf(2), links.launchesOf(2)], [[], []]);
});

test("what belongs to a selection lights up", () => {
  const links = linksOf(new DeviceTimeline(EVENTS, 400), workOf());
  const highlightedBy = (spanKind: number, row: number): number[][] => {
    const { blocks, activities } = links.highlightedBy({ kind: "span", spanKind, row });
    return [[...blocks], [...activities]];
  };

  assert.deepEqual(highlightedBy(SpanKind.kernel, 0), [[0, 1], [0]]);
  assert.deepEqual(highlightedBy(SpanKind.range, 0), [[], [1]]);
  assert.deepEqual(highlightedBy(SpanKind.call, 2), [[], [2]]);
  assert.deepEqual([...links.highlightedBy({ kind: "block", block: 1 }).activities], [0]);
  assert.deepEqual(links.highlightedBy({ kind: "span", spanKind: SpanKind.wait, row: 5 }).spans, [
    { kind: "span", spanKind: SpanKind.wait, row: 5 },
  ]);
  assert.equal(links.highlightedBy(undefined).blocks.size, 0);
});

test("a backward pass has the work of the threads that do it", () => {
  const gpu = workOf();
  const stack = [1, 2, 2];
  const call = { time: [201, 210, 220], end: [202, 211, 221], correlation: [4, 5, 6] };
  gpu.append(tableOf("api_calls", { ...call, thread: [8, 8, 9], stack }));
  const kind = ["kernel", "kernel", "kernel"];
  gpu.append(
    tableOf("activities", {
      time: [400, 401, 402],
      end: [401, 402, 403],
      kind,
      correlation: [4, 5, 6],
    }),
  );
  const phase = { id: [2], time: [200], end: [230], kind: ["backward"], thread: [7] };
  gpu.append(tableOf("phases", phase));
  const stacks = new Stacks();
  const [none, zero] = [
    ["", ""],
    [0, 0],
  ];
  const places = { module: none, phase: ["", "backward"], forward_frame: zero };
  stacks.append(tableOf("stacks", { id: [1, 2], frames: [[], []], ...places }));
  const links = linksOf(new DeviceTimeline(EVENTS, 400), gpu, stacks);

  assert.deepEqual(links.launchedBy(SpanKind.backward, 1), [4, 5]);

  // In a merged recording, the other rank has its own backward pass at the same time.
  const ranks = { name: ["rank 0", "rank 1"], devices: [[0], [1]], ordinals: [[0], [0]] };
  gpu.append(tableOf("processes", { ...ranks, threads: [[7, 8], [9]] }));
  assert.deepEqual(links.launchedBy(SpanKind.backward, 1), [4]);
});

test("an address that is used again and again is looked up in no time", () => {
  const count = 50_000;
  const rows = Array.from({ length: 2 * count }, (_, row) => ({
    timeNs: row,
    action: row % 2 === 0 ? Action.alloc : Action.free_completed,
    address: 4096,
    size: 512,
  }));
  const correlation = Array.from({ length: count }, (_, launch) => launch + 1);
  const gpu = new GpuActivities();
  gpu.append(
    tableOf("activities", {
      time: correlation.map((id) => 2 * id - 1.5),
      end: correlation.map((id) => 2 * id - 1),
      kind: correlation.map(() => "kernel"),
      correlation,
    }),
  );
  gpu.append(tableOf("launch_blocks", { correlation, block: correlation.map(() => 4096) }));
  gpu.append(tableOf("accessed_blocks", { event: correlation.map((id) => 2 * id - 2) }));
  const links = linksOf(new DeviceTimeline(eventsOf(rows), 2 * count), gpu);
  const begin = performance.now();

  assert.deepEqual(links.launchesOf(777), [{ row: 777, access: "unknown" }]);
  assert.ok(performance.now() - begin < 1000);
});
