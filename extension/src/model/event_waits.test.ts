import assert from "node:assert/strict";
import { test } from "node:test";

import { Divisions } from "./divisions.ts";
import { EventWaits } from "./event_waits.ts";
import { tableOf } from "./table_of.ts";
import { Work } from "./work.ts";

test("a wait joins the end of what was recorded with the begin of what waited", () => {
  const work = new Work();
  work.append(
    tableOf("activities", {
      time: [10, 30, 45, 50],
      end: [20, 40, 48, 60],
      kind: ["kernel", "kernel", "kernel", "kernel"],
      stream: [1, 1, 2, 2],
      correlation: [1, 4, 2, 7],
    }),
  );
  work.append(
    tableOf("synchronizations", {
      time: [0, 22, 6, 9],
      end: [0, 22, 6, 9],
      kind: ["event_record", "event_record", "stream_wait_event", "stream_wait_event"],
      stream: [1, 1, 2, 3],
      event_sync_id: [100, 101, 100, 101],
      correlation: [3, 5, 6, 8],
    }),
  );
  const waits = new EventWaits(work);

  assert.deepEqual([...waits.recordedStream], [1, 1]);
  assert.deepEqual([...waits.recordedNs], [20, 22]);
  assert.deepEqual([...waits.waitingStream], [2, 3]);
  assert.deepEqual([...waits.resumedNs], [50, 22]);
});

test("without sync ids a wait is for the latest record of its event before it", () => {
  const work = new Work();
  work.append(
    tableOf("synchronizations", {
      time: [5, 25, 45, 30],
      end: [5, 25, 45, 30],
      kind: ["event_record", "event_record", "event_record", "stream_wait_event"],
      stream: [1, 2, 3, 4],
      event: [9, 9, 9, 9],
      correlation: [1, 3, 6, 5],
    }),
  );
  const waits = new EventWaits(work);

  assert.deepEqual([...waits.recordedStream], [2]);
  assert.deepEqual([...waits.resumedNs], [30]);
});

test("cells divide a recording, without any the outermost ranges do", () => {
  const work = new Work();
  const ranges = { id: [1, 2, 3], time: [0, 2, 12], end: [10, 8, -1], parent: [0, 1, 0] };
  work.append(tableOf("ranges", { ...ranges, kind: ["range", "range", "nvtx"] }));
  const divisions = new Divisions(work.ranges);
  const outermost = divisions.row;
  work.append(tableOf("ranges", { id: [4], time: [3], end: [9], kind: ["cell"], parent: [1] }));

  assert.deepEqual([...(outermost?.source ?? [])], [0, 2]);
  assert.deepEqual([...(outermost?.toNs ?? [])], [10, Infinity]);
  divisions.extend();
  assert.deepEqual([...(divisions.row?.source ?? [])], [3]);
  work.append(tableOf("ranges", { id: [5], time: [11], end: [-1], kind: ["cell"] }));
  divisions.extend();
  work.append(tableOf("ranges", { id: [5], time: [11], end: [15], kind: ["cell"] }));
  divisions.extend();
  assert.deepEqual([...(divisions.row?.toNs ?? [])], [9, 15]);
  assert.equal(new Divisions(new Work().ranges).row, undefined);
});
