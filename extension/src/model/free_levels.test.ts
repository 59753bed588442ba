import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { FreeLevels } from "./free_levels.ts";
import { GrowingRecording } from "./growing_recording.ts";

const [SEGMENT, ALLOC, FREE] = ["segment_alloc", "alloc", "free_completed"] as const;

/** Events of two devices; blocks 900 lie outside the segments. */
const EVENTS = {
  time: [0, 10, 20, 30, 40, 50, 60],
  device: [0, 0, 1, 0, 0, 0, 0],
  action: [SEGMENT, ALLOC, SEGMENT, ALLOC, ALLOC, FREE, FREE],
  address: [100, 120, 500, 900, 170, 120, 900],
  size: [100, 30, 64, 8, 10, 30, 8],
};
const CHANGES = {
  device: [0, 0, 1, 0, 0, 0, 0],
  event: [0, 1, 0, 2, 3, 4, 5],
  largest: [100, 50, 64, 50, 20, 70, 70],
  outside: [0, 0, 0, 8, 8, 8, 0],
};

type Columns = Readonly<Record<string, readonly (number | string)[]>>;

function slice(columns: Columns, from: number, to: number): Columns {
  const parts = Object.entries(columns).map(([name, values]) => [name, values.slice(from, to)]);
  return Object.fromEntries(parts) as Columns;
}

test("free bytes are those reserved and not active; blocks outside segments do not count", () => {
  const recording = new GrowingRecording();
  recording.append(tableOf("memory_events", EVENTS));
  recording.append(tableOf("free_levels", CHANGES));
  for (const [device, free, largest] of [
    [0, [100, 70, 70, 60, 90, 90], [100, 50, 50, 20, 70, 70]],
    [1, [64], [64]],
  ] as const) {
    const levels = new FreeLevels();
    levels.extend(recording.gpu.freeChanges, device, recording.contentsOf(device).timeline);
    assert.deepEqual([...levels.free.values], free);
    assert.deepEqual([...levels.largest.values], largest);
  }
});

test("levels are known until the last change of an event that is there", () => {
  const recording = new GrowingRecording();
  const levels = new FreeLevels();
  const known = [];
  for (const [events, changes] of [
    [2, 1],
    [2, 7],
    [7, 7],
  ] as const) {
    const { gpu, eventCount } = recording;
    recording.append(tableOf("memory_events", slice(EVENTS, eventCount, events)));
    recording.append(tableOf("free_levels", slice(CHANGES, gpu.freeChanges.count, changes)));
    levels.extend(gpu.freeChanges, 0, recording.contentsOf(0).timeline);
    known.push(levels.known);
  }
  assert.deepEqual(known, [1, 2, 6]);
  assert.deepEqual([...levels.free.values], [100, 70, 70, 60, 90, 90]);
});

test("what happened before is unknown if the events are not counted any more", () => {
  const recording = new GrowingRecording();
  const levels = new FreeLevels();
  recording.append(tableOf("memory_events", EVENTS));
  recording.append(tableOf("free_levels", { ...CHANGES, event: CHANGES.event.map(() => -1) }));
  levels.extend(recording.gpu.freeChanges, 0, recording.contentsOf(0).timeline);
  assert.equal(levels.known, 0);
});
