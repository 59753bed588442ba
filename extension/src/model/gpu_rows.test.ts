import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { GrowingRecording } from "./growing_recording.ts";
import { kernelRows } from "./gpu_rows.ts";

test("a call that comes after its kernels gives them their line and their delay", () => {
  const recording = new GrowingRecording();
  recording.append(tableOf("strings", { id: [1], text: ["scale"] }));
  const kernels = {
    time: [30, 50],
    end: [40, 65],
    kind: ["kernel", "kernel"],
    name: [1, 1],
    correlation: [7, 8],
  };
  recording.append(tableOf("activities", kernels));
  const rows = kernelRows(recording.contentsOf(0), undefined);
  const [early] = rows();
  recording.append(tableOf("api_calls", { time: [9, 19], end: [10, 20], correlation: [7, 8] }));
  const [late] = rows();
  const [inWindow] = kernelRows(recording.contentsOf(0), { fromNs: 40, toNs: 50 })();

  assert.equal(early?.launchDelayNs, undefined);
  assert.deepEqual([late?.count, late?.totalNs, late?.launchDelayNs], [2, 25, 25]);
  assert.deepEqual([inWindow?.count, inWindow?.totalNs, inWindow?.launchDelayNs], [1, 15, 30]);
});
