import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { GpuActivities } from "./gpu_activities.ts";
import { GpuDescriptions } from "./gpu_description.ts";
import { RecordedNames } from "./names.ts";
import { SpanKind } from "./span_kinds.ts";
import { Stacks } from "./stacks.ts";

test("an idle gap is named by its length and its main cause, unless that is unknown", () => {
  const gpu = new GpuActivities();
  const gaps = {
    device: [0, 0, 0],
    stream: [0, 0, 0],
    time: [10_000, 12_000, 60_000],
    end: [12_000, 40_000, 69_000],
    cause: ["host", "synchronization", "unknown"],
    activity: [1, 1, 2],
  };
  gpu.append(tableOf("idle_gaps", gaps));
  const describe = new GpuDescriptions(gpu, new Stacks(), new RecordedNames());
  const idle = gpu.idleGaps.of(0, 0);
  const names = [0, 1].map((gap) => idle && describe.shortName(idle.gaps, gap, idle));

  assert.deepEqual(names, ["30.0 µs, host waits", "9.00 µs"]);
});

test("an idle gap says what the host did, the longest first", () => {
  const gpu = new GpuActivities();
  gpu.append(tableOf("activities", { time: [40_000], end: [50_000], kind: ["kernel"] }));
  const gap = { device: [0], stream: [0], time: [10_000], end: [40_000] };
  gpu.append(tableOf("idle_gaps", { ...gap, cause: ["host"], activity: [0] }));
  gpu.append(
    tableOf("host_work", {
      device: [0, 0, 0, 1],
      time: [10_000, 12_000, 30_000, 10_000],
      end: [12_000, 30_000, 45_000, 40_000],
      activity: [0, 0, 0, 0],
      text: ["compilation", "`sort(x)`", "compilation", "elsewhere"],
      stack: [0, 0, 0, 0],
    }),
  );
  const describe = new GpuDescriptions(gpu, new Stacks(), new RecordedNames());
  const idle = gpu.idleGaps.of(0, 0);

  assert.deepEqual(describe.hostWork(0, 10_000, 40_000), [
    "the host: 18.0 µs `sort(x)`",
    "the host: 12.0 µs compilation",
  ]);
  assert.equal(idle && describe.shortName(idle.gaps, 0, idle), "30.0 µs, `sort(x)`");
});

test("what ran between two calls is described by the text that arrives after it", () => {
  const gpu = new GpuActivities();
  gpu.append(
    tableOf("host_samples", {
      time: [0, 40_000],
      end: [40_000, 60_000],
      thread: [7, 7],
      stack: [0, 0],
      state: ["working", "waiting"],
    }),
  );
  const describe = new GpuDescriptions(gpu, new Stacks(), new RecordedNames());
  const before = describe.name(SpanKind.hostCode, 0);
  gpu.append(tableOf("sampled_work", { text: ["np.sort(x)", "waiting in queue.get()"] }));

  assert.equal(before, "host code");
  assert.deepEqual(describe.span(gpu.hostSamples.kindOf(0), 0), [
    "np.sort(x)",
    "Host code for 40.0 µs, at 0 ns",
  ]);
  assert.deepEqual(describe.span(gpu.hostSamples.kindOf(1), 1), [
    "waiting in queue.get()",
    "Host code that waits for 20.0 µs, at 40 µs",
  ]);
});
