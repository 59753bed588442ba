import { countAtMost, countBelow } from "../base/search.ts";
import { endOfAllocation, NO_EVENT } from "./blocks.ts";
import { categoryOf, type Categories } from "./categories.ts";
import { PLACES, type CategoryLevels } from "./category_levels.ts";
import { columnSmallest, type LevelLine } from "./decimation.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import type { Floats, Indices } from "./events.ts";

/** With at most so many blocks in a window, each has a band of its own. */
const MOST_BLOCKS = 300;

/** Bands on top of each other, the lowest first. */
interface Bands {
  /** The category of each band. */
  readonly places: ArrayLike<number>;
  /** The block of each band; undefined if each band holds all blocks of its category. */
  readonly blocks: readonly number[] | undefined;
  /** The bytes of each band in the first stretch, then in the second, and so on. */
  readonly bytes: Floats;
}

/**
 * What is allocated in each pixel column, in stretches of columns that are alike.
 *
 * A column shows one state: the first of those in its time that have the most bytes.
 */
export interface AllocationStack extends Bands {
  readonly columns: number;
  /** The first column of each stretch. */
  readonly starts: Indices;
  /** The event after which a stretch's state begins, or -1 before the first. */
  readonly rows: Indices;
  /** The least bytes allocated in the time of each of a stretch's columns. */
  readonly least: Floats;
}

/** The stack from one time to another, in columns that end before the rows `ends`. */
export function allocationStack(
  timeline: DeviceTimeline,
  categories: Categories,
  levels: CategoryLevels,
  { from, to }: { readonly from: number; readonly to: number },
  ends: Indices,
): AllocationStack {
  const line = timeline.lines.allocated;
  const fullest = fullestRows(line, ends);
  const smallest = columnSmallest(line, ends);
  const differs = (_: number, column: number): boolean =>
    fullest[column] !== fullest[column - 1] || smallest[column] !== smallest[column - 1];
  const starts = fullest.map((_, column) => column).filter(differs);
  const rows = starts.map((column) => fullest[column] ?? 0);
  const least = Float64Array.from(starts, (column) => smallest[column] ?? 0);
  const blocks = blocksIn(timeline, categories, from, to);
  const bands =
    blocks === undefined ? categoryBands(levels, rows) : blockBands(timeline, blocks, rows);
  return { ...bands, columns: fullest.length, starts, rows, least };
}

/** The stretch that a column is in. */
export function stretchAt({ starts }: AllocationStack, column: number): number {
  return countAtMost(starts, column) - 1;
}

/** The bands of a stretch. */
export function bandsIn({ places, bytes }: AllocationStack, stretch: number): Floats {
  return bytes.subarray(stretch * places.length, (stretch + 1) * places.length);
}

function fullestRows(line: LevelLine, ends: Indices): Int32Array {
  return Int32Array.from({ length: ends.length - 1 }, (_, column) =>
    line.largestRow(Math.max((ends[column] ?? 0) - 1, 0), ends[column + 1] ?? 0),
  );
}

function categoryBands(levels: CategoryLevels, rows: Indices): Bands {
  const bytes = new Float64Array(rows.length * PLACES);
  rows.forEach((row, stretch) => bytes.set(levels.after(row), stretch * PLACES));
  return { places: [...Array(PLACES).keys()], blocks: undefined, bytes };
}

interface PlacedBlock {
  readonly block: number;
  readonly place: number;
}

/** The blocks in a time by category, then as they were allocated; undefined if they are many. */
function blocksIn(
  { blocks }: DeviceTimeline,
  categories: Categories,
  from: number,
  to: number,
): PlacedBlock[] | undefined {
  const found: PlacedBlock[] = [];
  const { allocated, fromNs, inUseUntilNs } = blocks;
  for (const [first, last] of blocks.extents.overlapping(from, to)) {
    for (let block = first; block < last; block += 1) {
      const isIn = (fromNs[block] ?? 0) <= to && (inUseUntilNs[block] ?? 0) >= from;
      if (isIn && allocated[block] !== NO_EVENT) {
        found.push({ block, place: categoryOf(categories, block) });
        if (found.length > MOST_BLOCKS) {
          return undefined;
        }
      }
    }
  }
  return found.sort((left, right) => left.place - right.place || left.block - right.block);
}

function blockBands(
  { blocks }: DeviceTimeline,
  placed: readonly PlacedBlock[],
  rows: Indices,
): Bands {
  const count = placed.length;
  const bytes = new Float64Array(rows.length * count);
  placed.forEach(({ block }, band) => {
    const size = blocks.size[block] ?? 0;
    const first = countBelow(rows, blocks.allocated[block] ?? 0);
    const last = countBelow(rows, endOfAllocation(blocks, block), first);
    for (let stretch = first; stretch < last; stretch += 1) {
      bytes[stretch * count + band] = size;
    }
  });
  return {
    places: placed.map(({ place }) => place),
    blocks: placed.map((each) => each.block),
    bytes,
  };
}
