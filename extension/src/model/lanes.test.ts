import assert from "node:assert/strict";
import { test } from "node:test";

import type { Lane } from "./lane.ts";
import { Lanes } from "./lanes.ts";
import { SPAN_KINDS } from "./span_kinds.ts";
import { tableOf } from "../../testing/table_of.ts";
import { GpuActivities } from "./gpu_activities.ts";

function shown(lane: Lane | undefined): string[][] {
  return (lane?.stack.rows ?? []).map((row) =>
    [...row.kind].map(
      (kind, span) => `${row.fromNs[span]}-${row.toNs[span]} ${SPAN_KINDS[kind] ?? ""}`,
    ),
  );
}

test("a stream's activities lie in its lane, in whatever batches they come", () => {
  const gpu = new GpuActivities();
  const lanes = new Lanes(gpu);
  gpu.append(
    tableOf("activities", {
      time: [10, 12, 5],
      end: [20, 15, 9],
      kind: ["kernel", "memcpy", "memset"],
      copy_kind: ["", "host_to_device", ""],
      device: [0, 0, 1],
      stream: [1, 2, 3],
    }),
  );
  lanes.extend();
  gpu.append(
    tableOf("activities", {
      time: [15, 1, 20],
      end: [25, 8, 30],
      kind: ["kernel", "graph", "memcpy"],
      copy_kind: ["", "", "peer_to_peer"],
      device: [0, 0, 0],
      stream: [1, 1, 1],
    }),
  );
  lanes.extend();

  assert.deepEqual(
    lanes.ofDevice(0).map((lane) => lane.title),
    ["stream 1", "stream 2"],
  );
  assert.deepEqual(shown(lanes.ofDevice(0)[0]), [
    ["1-8 graph launch", "10-20 kernel", "20-30 copy device to device"],
    ["15-25 kernel"],
  ]);
  assert.deepEqual(shown(lanes.ofDevice(0)[1]), [["12-15 copy host to device"]]);
});

test("a thread's ranges, calls and waits are nested", () => {
  const gpu = new GpuActivities();
  const lanes = new Lanes(gpu);
  gpu.append(tableOf("threads", { id: [7, 8], name: ["main", ""] }));
  gpu.append(
    tableOf("ranges", {
      id: [1, 2],
      time: [0, 10],
      end: [-1, 60],
      kind: ["cell", "nvtx"],
      thread: [7, 7],
    }),
  );
  gpu.append(
    tableOf("api_calls", { time: [20, 70], end: [40, 80], thread: [7, 8], correlation: [5, 6] }),
  );
  gpu.append(
    tableOf("host_waits", {
      time: [22, 70],
      end: [38, 80],
      kind: ["stream_synchronize", "memcpy"],
      call: [0, 1],
      synchronization: [0, -1],
      thread: [7, 8],
    }),
  );
  lanes.extend();
  const [main, other] = lanes.threads;

  assert.deepEqual([main?.title, other?.title], ["main", "thread 8"]);
  assert.deepEqual(shown(main), [
    ["0-Infinity cell"],
    ["10-60 NVTX range"],
    ["20-40 CUDA call"],
    ["22-38 host waits"],
  ]);
  assert.deepEqual(shown(other), [["70-80 CUDA call"]]);

  gpu.append(tableOf("ranges", { id: [1], time: [0], end: [90], kind: ["cell"], thread: [7] }));
  lanes.extend();
  assert.deepEqual(shown(lanes.threads[0])[0], ["0-90 cell"]);
});

test("the passes of a training are in the lane of its thread", () => {
  const gpu = new GpuActivities();
  const lanes = new Lanes(gpu);
  const range = { id: [1], time: [0], end: [90], kind: ["range"], thread: [7] };
  gpu.append(tableOf("ranges", range));
  const kind = ["forward", "backward", "optimizer"];
  const times = { id: [2, 3, 4], time: [10, 30, 50], end: [20, 40, 60], kind, thread: [7, 7, 7] };
  gpu.append(tableOf("phases", { ...times, parent: [1, 1, 1] }));
  gpu.append(tableOf("api_calls", { time: [10], end: [12], thread: [7], correlation: [5] }));
  lanes.extend();

  assert.deepEqual(shown(lanes.threads[0]), [
    ["0-90 range"],
    ["10-20 forward pass", "30-40 backward pass", "50-60 optimizer step"],
    ["10-12 CUDA call"],
  ]);
});

test("what ran between a thread's calls lies in its lane, a collection in what it interrupts", () => {
  const gpu = new GpuActivities();
  const lanes = new Lanes(gpu);
  const samples = { thread: [7, 7, 7], stack: [0, 0, 0] };
  gpu.append(tableOf("api_calls", { time: [10, 90], end: [20, 99], thread: [7, 7] }));
  lanes.extend();
  gpu.append(
    tableOf("host_samples", {
      ...samples,
      time: [20, 60, 30],
      end: [60, 90, 40],
      state: ["working", "gil", "collection"],
    }),
  );
  lanes.extend();

  assert.deepEqual(shown(lanes.threads[0]), [
    ["10-20 CUDA call", "20-60 host code", "60-90 host code that waits", "90-99 CUDA call"],
    ["30-40 garbage collection"],
  ]);
});
