import { Action } from "../wire/codes.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import { DeviceTimeline } from "./device_timeline.ts";
import { describeMark, findMarks } from "./marks.ts";
import { eventsOf } from "../../testing/random_program.ts";
import { Stacks } from "./stacks.ts";

const MIB = 2 ** 20;

function timelineOf(...rows: readonly (readonly [number, number])[]): DeviceTimeline {
  const events = rows.map(([action, size], row) => {
    return { timeNs: 10 * row, action, address: 4096 * (row + 1), size };
  });
  return new DeviceTimeline(eventsOf(events), 1000);
}

test("a call of empty_cache is marked instead of the segments that it gave back", () => {
  const timeline = timelineOf(
    [Action.segment_free, 2],
    [Action.segment_unmap, 3],
    [Action.empty_cache, 5],
    [Action.empty_cache, 0],
  );

  const marks = findMarks(timeline);

  assert.deepEqual(marks, [
    { kind: "empty_cache()", row: 2, timeNs: 20, bytes: 5 },
    { kind: "empty_cache()", row: 3, timeNs: 30, bytes: 0 },
  ]);
  const described = marks.map((mark) => describeMark(mark, timeline, new Stacks()));
  assert.deepEqual(
    described.map(([kind, , bytes]) => [kind, bytes]),
    [
      ["empty_cache()", "5 B"],
      ["empty_cache()", "0 B"],
    ],
  );
});

test("segments that went back for another reason are marked apart", () => {
  const timeline = timelineOf(
    [Action.segment_free, 2 * MIB],
    [Action.segment_free, 20 * MIB],
    [Action.empty_cache, 20 * MIB],
    [Action.segment_free, MIB],
    [Action.oom, 9 * MIB],
    [Action.snapshot, 0],
    [Action.segment_free, 4 * MIB],
  );

  assert.deepEqual(
    findMarks(timeline).map(({ kind, row, bytes }) => [kind, row, bytes / MIB]),
    [
      ["memory returned", 0, 2],
      ["empty_cache()", 2, 20],
      ["memory returned", 3, 1],
      ["out of memory", 4, 9],
      ["snapshot", 5, 0],
      ["memory returned", 6, 4],
    ],
  );
});
