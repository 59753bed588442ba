import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { HostMemory } from "./host_memory.ts";

const ROWS = [
  { time: 0, action: "segment_alloc", address: 64, size: 4, requested_size: 0 },
  { time: 0, action: "alloc", address: 64, size: 4, requested_size: 3 },
  { time: 0, action: "free_requested", address: 64, size: 4, requested_size: 3 },
  { time: 10, action: "segment_alloc", address: 128, size: 2, requested_size: 0 },
  { time: 10, action: "alloc", address: 128, size: 2, requested_size: 2 },
  { time: 20, action: "free_completed", address: 64, size: 4, requested_size: 3 },
  { time: 30, action: "segment_free", address: 64, size: 4, requested_size: 0 },
];

function memoryOf(rows: typeof ROWS, startNs = 0): HostMemory {
  const memory = new HostMemory();
  for (const part of [rows.slice(0, 4), rows.slice(4)]) {
    const columns = Object.fromEntries(
      (["time", "action", "address", "size", "requested_size"] as const).map((name) => [
        name,
        part.map((row) => row[name]),
      ]),
    );
    memory.append(tableOf("host_memory_events", columns), startNs);
    memory.extend(40);
  }
  return memory;
}

test("the levels of pinned memory are those after the events until a time", () => {
  const memory = memoryOf(ROWS);

  assert.deepEqual(memory.levelsAt(0), { reserved: 4, active: 4, allocated: 0, requested: 3 });
  assert.deepEqual(memory.levelsAt(15), { reserved: 6, active: 6, allocated: 2, requested: 5 });
  assert.deepEqual(memory.levelsAt(25), { reserved: 6, active: 2, allocated: 2, requested: 2 });
  assert.deepEqual(memory.levelsAt(39), { reserved: 2, active: 2, allocated: 2, requested: 2 });
});

test("the peak is none of the moments before the memory of the start is complete", () => {
  const memory = memoryOf(ROWS);

  assert.equal(memory.timeline.lines.allocated.values[memory.timeline.peak], 2);
});

test("before the first event there is none", () => {
  const memory = memoryOf(ROWS.map((row) => ({ ...row, time: row.time + 100 })));

  assert.deepEqual(memory.levelsAt(50), { reserved: 0, active: 0, allocated: 0, requested: 0 });
});

test("without events it is not recorded", () => {
  assert.equal(new HostMemory().isRecorded, false);
  assert.equal(memoryOf(ROWS).isRecorded, true);
});
