import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { GrowingRecording } from "./growing_recording.ts";
import { copyRows, kernelRows, synchronizationRows } from "./gpu_rows.ts";

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
  assert.deepEqual([inWindow?.count, inWindow?.totalNs, inWindow?.launchDelayNs], [1, 0, 30]);
});

test("only the time of a row in the window counts, in that shown and in the recording's own", () => {
  const recording = new GrowingRecording();
  recording.append(tableOf("strings", { id: [1], text: ["scale"] }));
  const kernels = { time: [0], end: [1000], kind: ["kernel"], name: [1] };
  recording.append(tableOf("activities", kernels));
  const copies = { time: [0], end: [1000], kind: ["memcpy"], bytes: [5000], copy_kind: [""] };
  recording.append(tableOf("activities", copies));
  const waits = { time: [0], end: [1000], kind: ["memcpy"], waiting_ns: [900], transfer_ns: [100] };
  recording.append(tableOf("host_waits", waits));
  const contents = recording.contentsOf(0);
  const shown = { fromNs: 850, toNs: 960 };
  const [kernel] = kernelRows(contents, shown)();
  const [copy] = copyRows(contents, shown)();
  const [wait] = synchronizationRows(contents, shown)();

  assert.deepEqual([kernel?.totalNs, kernel?.maxNs], [110, 110]);
  assert.deepEqual([copy?.totalNs, copy?.bytes, copy?.bytesPerSecond], [110, 5000, 5e9]);
  assert.deepEqual([wait?.totalNs, wait?.waitingNs, wait?.transferNs], [110, 50, 60]);
  recording.gpu.bounds = { fromNs: 900, toNs: 1000 };
  assert.equal(kernelRows(contents, undefined)()[0]?.totalNs, 100);
  assert.equal(kernelRows(contents, shown)()[0]?.totalNs, 60);
});
