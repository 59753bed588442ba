import assert from "node:assert/strict";
import { test } from "node:test";

import { Divisions } from "./divisions.ts";
import { tableOf } from "../../testing/table_of.ts";
import { Work } from "./work.ts";

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
