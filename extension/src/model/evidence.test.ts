import assert from "node:assert/strict";
import { test } from "node:test";

import { eventsOf } from "../../testing/random_program.ts";
import { tableOf } from "../../testing/table_of.ts";
import { Action } from "../wire/codes.ts";
import type { DeviceContents } from "./device_contents.ts";
import { DeviceTimeline } from "./device_timeline.ts";
import { lightsOf } from "./evidence.ts";
import { GpuActivities } from "./gpu_activities.ts";
import { NOTHING_HIGHLIGHTED } from "./selected.ts";
import { SpanKind } from "./span_kinds.ts";

const EVENTS = eventsOf([
  { timeNs: 0, action: Action.segment_alloc, address: 4096, size: 8192 },
  { timeNs: 10, action: Action.alloc, address: 4096, size: 512 },
  { timeNs: 20, action: Action.alloc, address: 8192, size: 512 },
]);

function contents(): DeviceContents {
  const gpu = new GpuActivities();
  gpu.append(
    tableOf("activities", {
      time: [50, 300],
      end: [60, 310],
      kind: ["kernel", "kernel"],
      correlation: [1, 2],
    }),
  );
  gpu.append(
    tableOf("idle_gaps", { time: [60], end: [300], cause: ["host"], activity: [1], stream: [0] }),
  );
  gpu.append(tableOf("ranges", { id: [1], time: [85], end: [130], kind: ["cell"], thread: [7] }));
  return { device: 0, timeline: new DeviceTimeline(EVENTS, 400), gpu } as unknown as DeviceContents;
}

test("evidence lights up exactly the rows that it names", () => {
  const shown = contents();
  const lit = (table: string, ...rows: number[]) => lightsOf({ table, rows }, shown);

  assert.deepEqual([...lit("memory_events", 0, 2).blocks], [1]);
  assert.deepEqual([...lit("activities", 1).activities], [1]);
  assert.deepEqual(lit("host_waits", 4).spans, [{ kind: "span", spanKind: SpanKind.wait, row: 4 }]);
  assert.deepEqual(lit("api_calls", 3).spans, [{ kind: "span", spanKind: SpanKind.call, row: 3 }]);
  assert.deepEqual(lit("ranges", 0).spans, [{ kind: "span", spanKind: SpanKind.cell, row: 0 }]);
});

test("of idle time the gap before an activity lights up, and none where there was none", () => {
  const gap = { fromNs: 60, toNs: 300, next: 1, stream: undefined };

  const { spans } = lightsOf({ table: "idle_gaps", rows: [0, 1] }, contents());

  assert.deepEqual(spans, [{ kind: "gap", gap }]);
});

test("without rows, and of tables that no track shows, nothing lights up", () => {
  assert.equal(lightsOf({ table: "activities", rows: [] }, contents()), NOTHING_HIGHLIGHTED);
  assert.equal(lightsOf({ table: "synchronizations", rows: [1] }, contents()), NOTHING_HIGHLIGHTED);
  assert.equal(lightsOf({ table: "memory_events", rows: [0] }, contents()), NOTHING_HIGHLIGHTED);
  assert.equal(lightsOf({ table: "idle_gaps", rows: [0] }, contents()), NOTHING_HIGHLIGHTED);
});
