import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { GrowingRecording } from "./growing_recording.ts";
import { copyRows, kernelRows, synchronizationRows, type KernelRow } from "./gpu_rows.ts";
import type { DeviceContents } from "./device_contents.ts";
import type { RelatedContents } from "./related.ts";
import type { CallSite } from "./stacks.ts";
import { search } from "./search.ts";

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
  const rows = (): readonly KernelRow[] => kernelRows(recording.contentsOf(0), undefined);
  const [early] = rows();
  recording.append(tableOf("api_calls", { time: [9, 19], end: [10, 20], correlation: [7, 8] }));
  const [late] = rows();
  const [inWindow] = kernelRows(recording.contentsOf(0), { fromNs: 40, toNs: 50 });

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
  const [kernel] = kernelRows(contents, shown);
  const [copy] = copyRows(contents, shown);
  const [wait] = synchronizationRows(contents, shown);

  assert.deepEqual([kernel?.totalNs, kernel?.maxNs], [110, 110]);
  assert.deepEqual([copy?.totalNs, copy?.bytes, copy?.bytesPerSecond], [110, 5000, 5e9]);
  assert.deepEqual([wait?.totalNs, wait?.waitingNs, wait?.transferNs], [110, 50, 60]);
  recording.gpu.bounds = { fromNs: 900, toNs: 1000 };
  assert.equal(kernelRows(contents, undefined)[0]?.totalNs, 100);
  assert.equal(kernelRows(contents, shown)[0]?.totalNs, 60);
});

test("the waits of a device are those for it, and those of its process for an unknown one", () => {
  const recording = new GrowingRecording();
  recording.append(
    tableOf("processes", {
      id: [1, 2],
      name: ["rank 0", "rank 1"],
      devices: [[0], [1]],
      ordinals: [[0], [0]],
      threads: [[11], [12]],
    }),
  );
  recording.append(
    tableOf("host_waits", {
      time: [0, 0, 0, 0],
      end: [1, 20, 300, 4000],
      kind: Array(4).fill("context_synchronize"),
      thread: [11, 12, 11, 12],
      device: [0, 1, -1, -1],
    }),
  );
  const totalNs = (device: number): number | undefined =>
    synchronizationRows(recording.contentsOf(device), undefined)[0]?.totalNs;

  assert.deepEqual([totalNs(0), totalNs(1)], [301, 4020]);
});

test("a kernel that three lines launch has three lines, in the table and in the search", () => {
  const recording = new GrowingRecording();
  recording.append(tableOf("strings", { id: [1], text: ["scale"] }));
  const correlation = [1, 2, 3, 4];
  const times = correlation.map((each) => 10 * each);
  const calls = { time: times, end: times, correlation, stack: [1, 2, 2, 3] };
  recording.append(tableOf("api_calls", calls));
  const kernels = {
    time: times,
    end: times.map((each) => each + 5),
    kind: times.map(() => "kernel"),
  };
  recording.append(tableOf("activities", { ...kernels, name: times.map(() => 1), correlation }));
  const siteOf = (stack: number): string => `run.py:${stack}`;
  const callSiteOf = (stack: number): CallSite => ({ site: siteOf(stack), source: `f(${stack})` });
  const stacks = { siteOf, callSiteOf };
  const contents = { ...recording.contentsOf(0), stacks } as unknown as RelatedContents &
    DeviceContents;

  const [row] = kernelRows(contents, undefined);
  const details = (query: string): string[] =>
    search(query, contents).flatMap(({ what, detail }) => (what === "scale" ? [detail] : []));

  assert.deepEqual(
    row?.callSites.map(({ source }) => source),
    ["f(2)", "f(1)", "f(3)"],
  );
  assert.deepEqual(details("scale"), [
    "2 times, 10 ns in all (50 % of kernels), run.py:2",
    "1 time, 5 ns in all (25 % of kernels), run.py:1",
    "1 time, 5 ns in all (25 % of kernels), run.py:3",
  ]);
  assert.equal(details("f(1)").length, 1);
});
