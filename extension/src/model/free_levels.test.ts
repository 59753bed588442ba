import { Action } from "../wire/codes.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import { eventsOf, randomProgram, type EventRow } from "../../testing/random_program.ts";
import { seeded } from "../../testing/seeded.ts";
import { columnExtremes, columnRows } from "./decimation.ts";
import { DeviceTimeline } from "./device_timeline.ts";
import { fragmentationAfter } from "./fragmentation.ts";
import { FreeLevels } from "./free_levels.ts";

const PAGE = 2048;
const PAGES = 24;

/** Blocks of many sizes in pages that touch: some are segments, others parts of two large ones. */
function pagedProgram(seed: number, count: number): EventRow[] {
  const random = seeded(seed);
  const pick = (limit: number): number => Math.floor(random() * limit);
  const owners = new Map<number, number>();
  const blocks = new Map<number, { size: number; stream: number; isPending: boolean }>();
  const rows: EventRow[] = [];
  let timeNs = 0;
  const push = (action: number, address: number, size: number, stream: number): void => {
    timeNs += pick(3) * 100;
    rows.push({ timeNs, action, address, size, stream });
  };
  const isFree = (from: number, to: number): boolean =>
    [...blocks].every(([at, { size }]) => at >= to || at + size <= from);
  while (rows.length < count) {
    const page = pick(PAGES);
    const address = PAGE * (page + 1);
    const stream = Math.floor(page / 8);
    const isMapped = stream > 0;
    if (!owners.has(page)) {
      owners.set(page, stream);
      push(isMapped ? Action.segment_map : Action.segment_alloc, address, PAGE, stream);
    } else if (isFree(address, address + PAGE) && random() < 0.15) {
      owners.delete(page);
      push(isMapped ? Action.segment_unmap : Action.segment_free, address, PAGE, stream);
    } else if (random() < 0.55) {
      const from = address + 256 * pick(8);
      const isLonger = isMapped && owners.get(page + 1) === stream;
      const end = address + (isLonger ? 2 : 1) * PAGE;
      const to = Math.min(from + 256 * (1 + pick(9)), end);
      if (isFree(from, to)) {
        blocks.set(from, { size: to - from, stream, isPending: false });
        push(Action.alloc, from, to - from, stream);
      }
    } else {
      const [at, block] = [...blocks][pick(blocks.size)] ?? [];
      if (at !== undefined && block !== undefined && !block.isPending && random() < 0.3) {
        block.isPending = true;
        push(Action.free_requested, at, block.size, block.stream);
      } else if (at !== undefined && block !== undefined) {
        blocks.delete(at);
        push(Action.free_completed, at, block.size, block.stream);
      }
    }
  }
  return rows;
}

function grownLevels(timeline: DeviceTimeline): FreeLevels {
  const levels = new FreeLevels(timeline);
  while (levels.extend(37)) {
    // In pieces, as the page does.
  }
  return levels;
}

test("free bytes and the largest free block are those of each moment", () => {
  for (const seed of [51, 52, 53]) {
    for (const rows of [pagedProgram(seed, 700), randomProgram(seed, 700)]) {
      const timeline = new DeviceTimeline(eventsOf(rows));
      const levels = grownLevels(timeline);
      rows.forEach((_, row) => {
        const { free, largestFree } = fragmentationAfter(timeline, row);
        assert.equal(levels.free.values[row], free, `seed ${seed}, row ${row}`);
        assert.equal(levels.largest.values[row], largestFree, `seed ${seed}, row ${row}`);
      });
    }
  }
});

test("each column has the extremes of its time, at any zoom", () => {
  const rows = pagedProgram(54, 900);
  const timeline = new DeviceTimeline(eventsOf(rows));
  const levels = grownLevels(timeline);
  const moments = rows.map((_, row) => fragmentationAfter(timeline, row));
  const columns = 31;
  for (const zoom of [1, 3, 10, 50, 400]) {
    const lengthNs = timeline.endNs / zoom;
    const from = (timeline.endNs - lengthNs) * 0.61;
    const ends = columnRows(timeline.events.timeNs, from, from + lengthNs, columns);
    for (const name of ["free", "largest"] as const) {
      const found = columnExtremes(levels[name], ends);
      for (let column = 0; column < columns; column += 1) {
        const edge = (at: number): number => from + (lengthNs * at) / columns;
        const before = rows.filter(({ timeNs }) => timeNs <= edge(column)).length;
        const last = rows.filter(({ timeNs }) => timeNs <= edge(column + 1)).length;
        const seen = moments
          .slice(Math.max(before - 1, 0), last)
          .map(({ free, largestFree }) => (name === "free" ? free : largestFree));
        assert.equal(found.largest[column], Math.max(...seen), `${zoom} ${name} ${column}`);
        assert.equal(found.smallest[column], Math.min(...seen), `${zoom} ${name} ${column}`);
      }
    }
  }
});

test("blocks that are known only from their frees were there from the start", () => {
  const whole = pagedProgram(55, 400);
  const first = whole.findIndex(({ action }, row) => row > 200 && action === Action.alloc);
  const segments = whole
    .slice(0, first)
    .filter(({ action }) => action >= Action.segment_alloc && action <= Action.segment_unmap);
  const rows = [...segments, ...whole.slice(first)].map((row, at) => ({ ...row, timeNs: at }));
  const timeline = new DeviceTimeline();
  const levels = new FreeLevels(timeline);
  // Until all segments are there, a block may begin outside them and end inside.
  for (let count = segments.length; count < rows.length;) {
    count = Math.min(count + 40, rows.length);
    timeline.extend(eventsOf(rows.slice(0, count)), 0);
    levels.extend(rows.length);
    for (let row = segments.length; row < count; row += 1) {
      const { free, largestFree } = fragmentationAfter(timeline, row);
      assert.equal(levels.free.values[row], free, `${count} events, row ${row}`);
      assert.equal(levels.largest.values[row], largestFree, `${count} events, row ${row}`);
    }
  }
  assert.ok(timeline.blocks.unannounced > 0);
});
