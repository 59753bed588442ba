import { Action } from "../wire/codes.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import type { Wholes } from "../base/growing.ts";
import { eventsOf, randomProgram, type EventRow } from "../../testing/random_program.ts";
import { columnExtremes, columnLargest, columnRows, LevelLine } from "./decimation.ts";
import { DeviceTimeline } from "./device_timeline.ts";

function lineOf(values: Wholes): LevelLine {
  const line = new LevelLine();
  line.extend(values);
  return line;
}

/** The totals after `count` events, counted anew from the start. */
function totalsAfter(rows: readonly EventRow[], count: number): Record<string, number> {
  const live = new Map<number, { size: number; requested: number; pending: boolean }>();
  let reserved = 0;
  for (const { action, address, size, requestedSize } of rows.slice(0, count)) {
    if (action === Action.alloc) {
      live.set(address, {
        size,
        requested: requestedSize ?? 0,
        pending: false,
      });
    } else if (action === Action.free_requested) {
      const block = live.get(address);
      live.set(address, {
        size,
        requested: block?.requested ?? 0,
        pending: true,
      });
    } else if (action === Action.free_completed) {
      live.delete(address);
    } else {
      reserved += action === Action.segment_alloc ? size : -size;
    }
  }
  const blocks = [...live.values()];
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  return {
    reserved,
    active: sum(blocks.map((block) => block.size)),
    allocated: sum(blocks.map((block) => (block.pending ? 0 : block.size))),
    requested: sum(blocks.map((block) => block.requested)),
  };
}

test("running levels equal totals counted anew after every event", () => {
  for (const seed of [1, 2, 3]) {
    const rows = randomProgram(seed, 300);
    const events = eventsOf(rows);
    const { lines } = new DeviceTimeline(events);
    rows.forEach((_, row) => {
      const found = {
        reserved: lines.reserved.values[row],
        active: lines.active.values[row],
        allocated: lines.allocated.values[row],
        requested: lines.requested.values[row],
      };
      assert.deepEqual(found, totalsAfter(rows, row + 1), `seed ${seed}, row ${row}`);
    });
  }
});

test("the peak is the first of the largest totals once the recording has begun", () => {
  const sizes = [9, -5, 2, 1, -1, 1, -5];
  const rows = sizes.map((size, row) => ({
    timeNs: row,
    action: size > 0 ? Action.alloc : Action.free_completed,
    address: Math.abs(size),
    size: Math.abs(size),
  }));
  rows.unshift({ timeNs: 0, action: Action.alloc, address: 5, size: 5 });
  const whole = new DeviceTimeline(eventsOf(rows));
  const late = new DeviceTimeline(eventsOf(rows, 4));

  assert.deepEqual([...whole.lines.allocated.values], [5, 14, 9, 11, 12, 11, 12, 12]);
  assert.equal(whole.peak, 1);
  assert.equal(late.peak, 4);
});

test("every pixel column holds the extremes of its events and where it started", () => {
  const rows = randomProgram(7, 400);
  const events = eventsOf(rows);
  const active = new DeviceTimeline(events).lines.active.values;
  const from = 3000;
  const to = 21_000;
  const columns = 37;
  const rowsOfColumns = columnRows(events.timeNs, from, to, columns);
  const found = columnExtremes(lineOf(active), rowsOfColumns);
  assert.deepEqual(columnLargest(lineOf(active), rowsOfColumns), found.largest);
  for (let column = 0; column < columns; column += 1) {
    const start = from + ((to - from) * column) / columns;
    const end = from + ((to - from) * (column + 1)) / columns;
    const before = rows.filter((row) => row.timeNs <= start).length;
    const last = rows.filter((row) => row.timeNs <= end).length;
    const seen = [...active.slice(Math.max(before - 1, 0), last)];
    assert.equal(found.largest[column], Math.max(...seen), `column ${column}`);
    assert.equal(found.smallest[column], Math.min(...seen), `column ${column}`);
    assert.equal(found.last[column], seen.at(-1), `column ${column}`);
  }
});

test("a peak of one event in ten million is seen when all of them are shown", () => {
  const count = 10_000_000;
  const timeNs = new Float64Array(count).map((_, row) => row);
  const level = new Float64Array(count).fill(5);
  level[7_654_321] = 9;
  const line = lineOf(level);
  const { largest } = columnExtremes(line, columnRows(timeNs, 0, count, 1400));

  assert.equal(largest.filter((value) => value === 9).length, 1);
  assert.equal(largest[Math.floor((7_654_321 * 1400) / count)], 9);
});
