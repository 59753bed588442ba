import { Action } from "../wire/codes.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import { eventsOf, randomProgram, type EventRow } from "../../testing/random_program.ts";
import { allocationStack, bandsIn, stretchAt } from "./allocation_stack.ts";
import { BlockGroups } from "./block_groups.ts";
import { categorize, categoryOf, type Categories } from "./categories.ts";
import { CategoryLevels } from "./category_levels.ts";
import { columnRows } from "./decimation.ts";
import { DeviceTimeline } from "./device_timeline.ts";

const STACKS = 13;
const COLUMNS = 41;
const ZOOMS = [1, 2, 5, 20, 200];

function program(seed: number): EventRow[] {
  return randomProgram(seed, 2000).map((row, at) => ({ ...row, stack: (at * 7) % STACKS }));
}

function categoriesOf(groups: BlockGroups): Categories {
  groups.extend();
  return categorize(groups, String, "rest");
}

/** What the program holds after so many events: each block's allocation and size. */
function heldAfter(rows: readonly EventRow[], count: number): { row: number; size: number }[] {
  const held = new Map<number, { row: number; size: number }>();
  rows.slice(0, count).forEach(({ action, address, size }, row) => {
    if (action === Action.alloc) {
      held.set(address, { row, size });
    } else if (action === Action.free_requested) {
      held.delete(address);
    }
  });
  return [...held.values()];
}

const sum = (values: readonly number[]): number => values.reduce((all, each) => all + each, 0);

/** The states in each column's time: the numbers of events before which each begins. */
function countsIn(rows: readonly EventRow[], from: number, to: number): number[] {
  const before = rows.filter(({ timeNs }) => timeNs <= from).length;
  const after = rows.filter(({ timeNs }) => timeNs <= to).length;
  return Array.from({ length: after - before + 1 }, (_, more) => before + more);
}

test("each column shows the state with the most bytes in its time, at any zoom", () => {
  let single = 0;
  for (const seed of [41, 42, 43]) {
    const rows = program(seed);
    const totals = Array.from({ length: rows.length + 1 }, (_, count) =>
      sum(heldAfter(rows, count).map(({ size }) => size)),
    );
    const timeline = new DeviceTimeline(eventsOf(rows));
    const categories = categoriesOf(new BlockGroups(timeline, "stack"));
    const levels = new CategoryLevels(categories);
    const placeOf = (row: number): number => categoryOf(categories, timeline.blocks.blockOf(row));
    for (const zoom of ZOOMS) {
      const lengthNs = timeline.endNs / zoom;
      const from = (timeline.endNs - lengthNs) * 0.37;
      const time = { from, to: from + lengthNs };
      const ends = columnRows(timeline.events.timeNs, from, time.to, COLUMNS);
      const stack = allocationStack(timeline, categories, levels, time, ends);
      single += stack.blocks === undefined ? 0 : 1;
      for (let column = 0; column < COLUMNS; column += 1) {
        const edge = (at: number): number => from + (lengthNs * at) / COLUMNS;
        const counts = countsIn(rows, edge(column), edge(column + 1));
        const most = Math.max(...counts.map((count) => totals[count] ?? 0));
        const shown = counts.find((count) => totals[count] === most) ?? 0;
        const held = heldAfter(rows, shown);
        const what = `seed ${seed}, zoom ${zoom}, column ${column}`;
        const stretch = stretchAt(stack, column);
        const found = bandsIn(stack, stretch);
        assert.equal(sum([...found]), most, what);
        assert.equal(stack.least[stretch], Math.min(...counts.map((count) => totals[count] ?? 0)));
        for (let place = 0; place < 10; place += 1) {
          const expected = held.filter(({ row }) => placeOf(row) === place);
          const bytes = [...found].filter((_, band) => stack.places[band] === place);
          assert.equal(sum(bytes), sum(expected.map(({ size }) => size)), `${what}, ${place}`);
        }
        const blocks = stack.blocks?.filter((_, band) => (found[band] ?? 0) > 0);
        const allocated = blocks?.map((block) => timeline.blocks.allocated[block] ?? -1);
        if (allocated !== undefined) {
          const expected = held.map(({ row }) => row);
          assert.deepEqual(new Set(allocated), new Set(expected), what);
        }
      }
    }
  }
  assert.ok(single > 0 && single < 3 * ZOOMS.length);
});

test("bands are in the order of their bytes at the peak, and their blocks in that of allocation", () => {
  const timeline = new DeviceTimeline(eventsOf(program(44)));
  const categories = categoriesOf(new BlockGroups(timeline, "stack"));
  const levels = new CategoryLevels(categories);
  const atPeak = [...levels.after(timeline.peak)];
  const named = categories.all.map(({ bytesAtPeak }) => bytesAtPeak);
  const { timeNs } = timeline.events;
  const to = timeNs[100] ?? 0;
  const ends = columnRows(timeNs, 0, to, 9);
  const stack = allocationStack(timeline, categories, levels, { from: 0, to }, ends);
  const { places, blocks = [] } = stack;
  const placed = blocks.map((block, band) => [places[band] ?? 0, block] as const);

  assert.deepEqual(atPeak, named);
  assert.deepEqual(
    atPeak.slice(0, 9),
    atPeak.slice(0, 9).toSorted((left, right) => right - left),
  );
  assert.deepEqual(
    placed,
    placed.toSorted((left, right) => left[0] - right[0] || left[1] - right[1]),
  );
  assert.ok(blocks.length > 10);
});

test("levels that grew batch by batch are those made at once, also when categories change", () => {
  const rows = program(45);
  const timeline = new DeviceTimeline();
  const groups = new BlockGroups(timeline, "stack");
  const levels = new CategoryLevels(categoriesOf(groups));
  for (let count = 0; count < rows.length;) {
    count = Math.min(count + 170, rows.length);
    timeline.extend(eventsOf(rows.slice(0, count)), 0);
    const categories = categoriesOf(groups);
    levels.extend(categories);
    const atOnce = new CategoryLevels(categories);
    for (const row of [count - 1, 3, 130, 128, 127, 129, -1].filter((each) => each < count)) {
      assert.deepEqual([...levels.after(row)], [...atOnce.after(row)], `${count} ${row}`);
    }
    const held = heldAfter(rows, count);
    assert.equal(sum([...levels.after(count - 1)]), sum(held.map(({ size }) => size)));
  }
});
