import assert from "node:assert/strict";
import { test } from "node:test";

import { tableOf } from "../../testing/table_of.ts";
import { GpuActivities } from "./gpu_activities.ts";
import { GpuDescriptions } from "./gpu_description.ts";
import { RecordedNames } from "./names.ts";
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
