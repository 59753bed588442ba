import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { GrowingRecording } from "./growing_recording.ts";
import { groupedLanes } from "./grouped_lanes.ts";

function merged(): GrowingRecording {
  const recording = new GrowingRecording();
  recording.append(
    tableOf("processes", {
      id: [1, 2],
      name: ["rank 0", "rank 1"],
      devices: [[0], [1, 2]],
      ordinals: [[0], [0, 1]],
      threads: [[11], [12]],
    }),
  );
  recording.append(tableOf("threads", { id: [11, 12], name: ["one", "two"] }));
  recording.append(
    tableOf("ranges", {
      id: [1, 2],
      time: [0, 5],
      end: [10, 20],
      thread: [11, 12],
      kind: ["range", "range"],
    }),
  );
  recording.append(
    tableOf("activities", {
      kind: ["kernel", "kernel", "kernel"],
      time: [1, 6, 7],
      end: [2, 8, 9],
      device: [0, 1, 2],
      stream: [1, 2, 3],
    }),
  );
  return recording;
}

function shown(device: number): [group: string | undefined, title: string][] {
  const recording = merged();
  const { gpu } = recording;
  const contents = recording.contentsOf(device);
  assert.equal(gpu.processes.all.length, 2);
  return groupedLanes(contents).map(({ group, title }) => [group, title]);
}

test("each process and device has a group of lanes, that of the shown device first", () => {
  assert.deepEqual(shown(0), [
    ["rank 0 GPU 0", "stream 1"],
    ["rank 0 GPU 0", "one"],
    ["rank 1 GPU 0", "stream 2"],
    ["rank 1 GPU 1", "stream 3"],
    ["rank 1", "two"],
  ]);
  assert.deepEqual(shown(2), [
    ["rank 1 GPU 1", "stream 3"],
    ["rank 1 GPU 0", "stream 2"],
    ["rank 1", "two"],
    ["rank 0 GPU 0", "stream 1"],
    ["rank 0 GPU 0", "one"],
  ]);
});

test("each device of one process has a group of lanes, above the host's threads", () => {
  const recording = new GrowingRecording();
  recording.append(
    tableOf("ranges", { id: [1], time: [0], end: [10], thread: [11], kind: ["range"] }),
  );
  const kernels = { kind: ["kernel", "kernel"], time: [1, 6], end: [2, 8] };
  recording.append(tableOf("activities", { ...kernels, device: [0, 1], stream: [1, 2] }));
  const shownOf = (device: number): (string | undefined)[] =>
    groupedLanes(recording.contentsOf(device)).map(({ group }) => group);

  assert.deepEqual(shownOf(0), ["GPU 0", "GPU 1", "Host threads"]);
  assert.deepEqual(shownOf(1), ["GPU 1", "GPU 0", "Host threads"]);
});

test("a thread in a group keeps its id, by which it is pinned", () => {
  const lanes = groupedLanes(merged().contentsOf(0));

  const threads = lanes.filter(({ stream }) => stream === undefined);
  assert.deepEqual(
    threads.map(({ thread }) => thread),
    [11, 12],
  );
});

test("memory that CUDA allocated is between the streams and the host's threads", () => {
  const recording = new GrowingRecording();
  recording.append(tableOf("threads", { id: [11], name: ["main"] }));
  recording.append(tableOf("api_calls", { time: [4], end: [5], thread: [11], correlation: [1] }));
  recording.append(
    tableOf("memory_operations", {
      time: [3],
      device: [0],
      operation: ["allocation"],
      memory: ["device"],
    }),
  );
  recording.append(
    tableOf("activities", { kind: ["kernel"], time: [6], end: [7], device: [0], stream: [1] }),
  );

  const titles = groupedLanes(recording.contentsOf(0)).map(({ title }) => title);

  assert.deepEqual(titles, ["stream 1", "CUDA memory", "main"]);
});

test("a device is called after its process, and a thread belongs to one", () => {
  const { processes } = merged().gpu;

  assert.equal(processes.deviceName(2), "rank 1 GPU 1");
  assert.equal(processes.deviceName(7), undefined);
  assert.equal(processes.isThreadOf(12, 1), true);
  assert.equal(processes.isThreadOf(11, 1), false);
  assert.equal(processes.isThreadOf(11, 7), true);
});

test("a thread with nothing but the overhead of recording is below the others", () => {
  const recording = new GrowingRecording();
  recording.append(tableOf("threads", { id: [11, 12], name: ["flush", "main"] }));
  recording.append(
    tableOf("overheads", { kind: ["buffer_flush"], time: [0], end: [3], thread: [11] }),
  );
  recording.append(tableOf("api_calls", { time: [4], end: [5], thread: [12], correlation: [1] }));
  recording.append(
    tableOf("activities", { kind: ["kernel"], time: [6], end: [7], device: [0], stream: [1] }),
  );

  const titles = groupedLanes(recording.contentsOf(0)).map(({ title }) => title);

  assert.deepEqual(titles, ["stream 1", "main", "flush"]);
});

test("a thread that only the samples of the host's code know is below the others", () => {
  const recording = new GrowingRecording();
  const times = { time: [0, 4], end: [3, 9] };
  recording.append(tableOf("threads", { id: [11, 12], name: ["pump", "main"] }));
  recording.append(
    tableOf("host_samples", {
      ...times,
      thread: [11, 12],
      stack: [0, 0],
      state: ["collection", "working"],
    }),
  );
  recording.append(
    tableOf("activities", { kind: ["kernel"], time: [1], end: [2], device: [0], stream: [1] }),
  );
  const titles = (): string[] => groupedLanes(recording.contentsOf(0)).map(({ title }) => title);
  const quiet = titles();
  recording.append(
    tableOf("ranges", { id: [1], time: [5], end: [6], thread: [12], kind: ["range"] }),
  );

  assert.deepEqual(quiet, ["stream 1", "pump", "main"]);
  assert.deepEqual(titles(), ["stream 1", "main", "pump"]);
});
