import assert from "node:assert/strict";
import { test } from "node:test";

import { Divisions } from "./divisions.ts";
import { tableOf } from "../../testing/table_of.ts";
import { GpuActivities } from "./gpu_activities.ts";

test("cells divide a recording, without any the outermost ranges do", () => {
  const gpu = new GpuActivities();
  const ranges = { id: [1, 2, 3], time: [0, 2, 12], end: [10, 8, -1], parent: [0, 1, 0] };
  gpu.append(tableOf("ranges", { ...ranges, kind: ["range", "range", "nvtx"] }));
  const divisions = new Divisions(gpu.ranges);
  const outermost = divisions.row;
  gpu.append(tableOf("ranges", { id: [4], time: [3], end: [9], kind: ["cell"], parent: [1] }));

  assert.deepEqual([...(outermost?.source ?? [])], [0, 2]);
  assert.deepEqual([...(outermost?.toNs ?? [])], [10, Infinity]);
  divisions.extend();
  assert.deepEqual([...(divisions.row?.source ?? [])], [3]);
  gpu.append(tableOf("ranges", { id: [5], time: [11], end: [-1], kind: ["cell"] }));
  divisions.extend();
  gpu.append(tableOf("ranges", { id: [5], time: [11], end: [15], kind: ["cell"] }));
  divisions.extend();
  assert.deepEqual([...(divisions.row?.toNs ?? [])], [9, 15]);
  assert.equal(new Divisions(new GpuActivities().ranges).row, undefined);
});
