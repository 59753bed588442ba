import assert from "node:assert/strict";
import { test } from "node:test";

import { eventsOf } from "../../testing/random_program.ts";
import { tableOf } from "../../testing/table_of.ts";
import { Action } from "../wire/codes.ts";
import { DeviceTimeline } from "./device_timeline.ts";
import { describeMark, MemoryMarks } from "./marks.ts";
import { Stacks } from "./stacks.ts";

test("the marks of a device are at its events", () => {
  const events = [Action.segment_free, Action.empty_cache, Action.oom].map((action, row) => {
    return { timeNs: 10 * row, action, address: 4096, size: 5 };
  });
  const timeline = new DeviceTimeline(eventsOf(events), 1000);
  const marks = new MemoryMarks();
  marks.append(
    tableOf("memory_marks", {
      device: [0, 1, 0, 0],
      event: [1, 0, 2, -1],
      kind: ["empty_cache", "snapshot", "out_of_memory", "memory_returned"],
      bytes: [5, 0, 9, 1],
    }),
  );

  const found = marks.ofDevice(0, timeline);

  assert.deepEqual(found, [
    { kind: "empty_cache()", row: 1, timeNs: 10, bytes: 5 },
    { kind: "out of memory", row: 2, timeNs: 20, bytes: 9 },
  ]);
  assert.deepEqual(
    found.map((mark) => describeMark(mark, timeline, new Stacks())[2]),
    ["5 B", "9 B"],
  );
});
