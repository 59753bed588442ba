import assert from "node:assert/strict";
import { test } from "node:test";

import { GrowingRecording } from "../model/growing_recording.ts";
import { readInto } from "../model/reading.ts";
import { PickleItems, type PickleValue } from "../wire/pickle_value.ts";
import { TorchRecording } from "./torch_recording.ts";
import { TorchSnapshot } from "./torch_snapshot.ts";

const MIB = 2 ** 20;
const BASE = 0x7f0000000000;
const FIRST_US = 1_700_000_000_000_000;

type Plain = string | number | boolean | undefined | readonly Plain[] | { [key: string]: Plain };

function valueOf(plain: Plain): PickleValue {
  if (plain instanceof Array) {
    return new PickleItems("list", plain.map(valueOf));
  }
  if (typeof plain === "object") {
    return new PickleItems("dict", Object.entries(plain).flat().map(valueOf));
  }
  return plain;
}

function recordingOf(snapshot: { [key: string]: Plain }): TorchRecording {
  return new TorchRecording(new TorchSnapshot(valueOf(snapshot), 10_000));
}

async function shownOf(recording: TorchRecording): Promise<GrowingRecording> {
  const shown = new GrowingRecording(recording.initialEvents);
  for await (const share of readInto(shown, recording)) {
    assert.ok(share <= 1);
  }
  return shown;
}

function event(action: string, addr: number, size: number, more: { [key: string]: Plain } = {}) {
  return { action, addr, size, stream: 0, ...more };
}

const SEGMENT = {
  device: 1,
  address: BASE,
  total_size: 20 * MIB,
  stream: 0x5a0,
  segment_type: "large",
  blocks: [
    { size: 4 * MIB, requested_size: 4 * MIB - 1, state: "active_allocated" },
    { size: 16 * MIB, state: "inactive" },
  ],
};

test("what existed before a trace is worked out from its segments and frees", async () => {
  const freed = event("free_requested", BASE + 4 * MIB, 3 * MIB, { time_us: FIRST_US });
  const completed = { ...freed, action: "free_completed", time_us: FIRST_US + 7 };
  const recording = recordingOf({ segments: [SEGMENT], device_traces: [[], [freed, completed]] });

  const shown = await shownOf(recording);
  const events = shown.events.ofDevice(1);

  assert.deepEqual(shown.devices, [1]);
  assert.equal(events?.initialCount, 3);
  assert.deepEqual([...(events?.action ?? [])], [3, 0, 0, 1, 2]);
  assert.deepEqual(
    [...(events?.size ?? [])].map((size) => size / MIB),
    [20, 4, 3, 3, 3],
  );
  assert.deepEqual([...(events?.timeNs ?? [])], [0, 0, 0, 0, 7000]);
  assert.equal(recording.durationNs, 7000);
  assert.equal(recording.manifest["created"], "2023-11-14T22:13:20.000Z");
  assert.deepEqual(recording.manifest["notes"], [
    "The torch snapshot's trace begins in the middle: what existed before (segments: 1, blocks: 2) " +
      "was worked out from what came after; when and where it was made is not known.",
  ]);
});

test("a block takes what torch would not split off", async () => {
  const segment = { ...SEGMENT, device: 0, blocks: [{ size: 20 * MIB, state: "inactive" }] };
  const request = 19 * MIB + 5;
  const trace = ["alloc", "free_requested", "free_completed"].map((action) =>
    event(action, BASE, request),
  );
  const recording = recordingOf({ segments: [segment], device_traces: [trace] });

  const table = await recording.tableIfAny("memory_events");

  assert.deepEqual(
    [...table.numbers("size")],
    Array.from({ length: 4 }, () => 20 * MIB),
  );
  assert.deepEqual([...table.numbers("requested_size")], [0, request, request, request]);
  assert.deepEqual([...table.numbers("time")], [0, 0, 1000, 2000]);
});

test("stacks, streams, pools and ranges have the names that the file gives", async () => {
  const frames = [
    { name: "forward", filename: "train.py", line: 12 },
    { name: "<module>", filename: "train.py", line: 30 },
  ];
  const step = { time_us: FIRST_US, frames, user_metadata: "step", pool_id: [0, 2] };
  const trace = [
    event("segment_alloc", BASE, 2 * MIB, step),
    event("alloc", BASE, 600, step),
    event("alloc", BASE + 1024, 600, { ...step, frames: [...frames], user_metadata: "" }),
  ];
  const recording = recordingOf({ segments: [], device_traces: [trace] });

  const { stacks, names, work } = (await shownOf(recording)).contentsOf(0);
  const table = await recording.tableIfAny("memory_events");

  assert.deepEqual([...table.numbers("stack").subarray(0, 3)], [1, 1, 1]);
  assert.equal(stacks.siteOf(1), "train.py:12 forward");
  assert.equal(names.stream(1), "default stream");
  assert.equal(names.pool(table.numbers("pool")[0] ?? 0), "MemPool 2 (small)");
  assert.deepEqual([...table.numbers("range").subarray(0, 3)], [1, 1, 0]);
  assert.equal(work.ranges.count, 1);
  assert.equal(work.strings.get(work.ranges.name[0] ?? 0), "step");
  // The trace does not end with the snapshot's empty memory: what leads there is added.
  assert.deepEqual(table.texts("action").slice(3), [
    "free_requested",
    "free_completed",
    "free_requested",
    "free_completed",
    "segment_free",
  ]);
});

test("what is no snapshot is refused with the place", () => {
  assert.throws(() => recordingOf({ weights: [1] }), /no torch memory snapshot: expected a dict/);
  assert.throws(
    () => recordingOf({ segments: [{ ...SEGMENT, total_size: 5 * MIB }] }),
    /segments\[0\].blocks\[1\]: expected the block to lie inside its segment/,
  );
  assert.throws(
    () => recordingOf({ segments: [], device_traces: [[event("alloc", BASE, -1)]] }),
    /device_traces\[0\]\[0\]: expected "size" to be an integer of at least 0/,
  );
});
