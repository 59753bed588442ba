import { Action } from "../wire/codes.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import { seeded } from "../../testing/seeded.ts";
import { busyIn } from "./busy.ts";
import { DeviceTimeline } from "./device_timeline.ts";
import { measure } from "./measurement.ts";
import { eventsOf, randomProgram } from "../../testing/random_program.ts";
import { isHostCopy, SpanKind } from "./span_kinds.ts";
import { SpanStack } from "./span_stack.ts";

test("busy and overlapping times are those of a look at each nanosecond", () => {
  const random = seeded(21);
  for (let round = 0; round < 30; round += 1) {
    const lanes = [1, 2, 3].map((stream) => {
      const fromNs = Array.from({ length: 12 }, () => Math.floor(random() * 200));
      const toNs = fromNs.map((from) => from + Math.floor(random() * 20));
      const kind = fromNs.map(() => Math.floor(random() * 8));
      const stack = new SpanStack();
      stack.append({ fromNs, toNs, kind, source: fromNs.map((_, place) => place) });
      return { title: "", stream, stack, fromNs, toNs, kind };
    });
    const [from, to] = [30 + Math.floor(random() * 40), 120 + Math.floor(random() * 60)];
    const expected = { busyNs: 0, kernelNs: 0, copyNs: 0, overlapNs: 0, deviceCopyNs: 0 };
    for (let time = from; time < to; time += 1) {
      const kinds = lanes.flatMap(({ fromNs, toNs, kind }) =>
        kind.filter((_, span) => (fromNs[span] ?? 0) <= time && time < (toNs[span] ?? 0)),
      );
      const hasKernel = kinds.includes(SpanKind.kernel);
      const hasCopy = kinds.some(isHostCopy);
      expected.busyNs += kinds.some((kind) => kind !== SpanKind.streamRange) ? 1 : 0;
      expected.kernelNs += hasKernel ? 1 : 0;
      expected.copyNs += hasCopy ? 1 : 0;
      expected.deviceCopyNs += kinds.includes(SpanKind.deviceToDevice) ? 1 : 0;
      expected.overlapNs += hasKernel && hasCopy ? 1 : 0;
    }
    assert.deepEqual(busyIn(lanes, from, to), expected);
  }
});

test("the memory of a window is that of its events and of what was there before", () => {
  const rows = randomProgram(9, 400);
  const timeline = new DeviceTimeline(eventsOf(rows), 0);
  for (const [from, to] of [
    [0, 40_000],
    [5_050, 5_060],
    [10_000, 20_000],
  ] as const) {
    const inside = rows.filter((row) => row.timeNs >= from && row.timeNs <= to);
    const allocs = inside.filter((row) => row.action === Action.alloc);
    const levels = [...timeline.lines.allocated.values].filter((_, row) => {
      const next = rows[row + 1]?.timeNs ?? Infinity;
      return (rows[row]?.timeNs ?? 0) <= to && (next >= from || (rows[row]?.timeNs ?? 0) >= from);
    });
    const found = measure(timeline, [], from, to);

    assert.equal(found.allocations, allocs.length);
    assert.equal(
      found.allocatedBytes,
      allocs.reduce((sum, row) => sum + row.size, 0),
    );
    assert.equal(found.peakBytes, Math.max(...levels));
    assert.equal(found.lowestBytes, Math.min(...levels));
    const at = (timeNs: number): number =>
      timeline.lines.allocated.values[rows.findLastIndex((row) => row.timeNs <= timeNs)] ?? 0;
    const each = Array.from({ length: to - from }, (_, past) => at(from + past));
    const mean = each.reduce((sum, level) => sum + level, 0) / each.length;
    assert.ok(Math.abs(found.meanBytes - mean) < 1e-6 * mean);
    assert.equal(found.busy, undefined);
  }
});
