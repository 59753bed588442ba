import { GrowingFloats } from "../base/growing.ts";
import { NO_EVENT } from "./blocks.ts";
import { Action, type Floats, type MemoryEvents } from "./events.ts";

/** Ranges of reserved addresses and the events between which they were reserved, as columns. */
export interface Segments {
  readonly count: number;
  readonly from: Floats;
  readonly to: Floats;
  /** The event that reserved the range; its stream and pool are the segment's. */
  readonly begun: Floats;
  /** The event that gave the range back, or NO_EVENT. */
  readonly ended: Floats;
}

interface OpenRange {
  readonly from: number;
  readonly to: number;
  readonly begun: number;
}

/** Follows segment_alloc, segment_free, segment_map and segment_unmap. */
export function findSegments(events: MemoryEvents): Segments {
  const closed = new SegmentColumns();
  const open: OpenRange[] = [];
  for (let row = 0; row < events.count; row += 1) {
    const action = events.action[row];
    const from = events.address[row] ?? 0;
    const to = from + (events.size[row] ?? 0);
    if (action === Action.segmentAlloc || action === Action.segmentMap) {
      open.splice(firstEndingAfter(open, from), 0, { from, to, begun: row });
    } else if (action === Action.segmentFree || action === Action.segmentUnmap) {
      cutOut(open, from, to, row, closed);
    }
  }
  for (const range of open) {
    closed.push(range.from, range.to, range.begun, NO_EVENT);
  }
  return closed.view();
}

/** The place of the first range that ends after an address; ranges are apart and ascend. */
function firstEndingAfter(open: readonly OpenRange[], address: number): number {
  let low = 0;
  let high = open.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((open[middle]?.to ?? Infinity) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Ends what lies in [from, to) and keeps the rest of a range that is given back in part. */
function cutOut(
  open: OpenRange[],
  from: number,
  to: number,
  row: number,
  closed: SegmentColumns,
): void {
  const first = firstEndingAfter(open, from);
  const kept: OpenRange[] = [];
  let next = first;
  for (let range = open[next]; range !== undefined && range.from < to; range = open[next]) {
    closed.push(Math.max(range.from, from), Math.min(range.to, to), range.begun, row);
    const before = { ...range, to: Math.min(range.to, from) };
    const after = { ...range, from: Math.max(range.from, to) };
    kept.push(...[before, after].filter((rest) => rest.to > rest.from));
    next += 1;
  }
  open.splice(first, next - first, ...kept);
}

class SegmentColumns {
  readonly #from = new GrowingFloats();
  readonly #to = new GrowingFloats();
  readonly #begun = new GrowingFloats();
  readonly #ended = new GrowingFloats();

  push(from: number, to: number, begun: number, ended: number): void {
    this.#from.push(from);
    this.#to.push(to);
    this.#begun.push(begun);
    this.#ended.push(ended);
  }

  view(): Segments {
    return {
      count: this.#from.length,
      from: this.#from.view(),
      to: this.#to.view(),
      begun: this.#begun.view(),
      ended: this.#ended.view(),
    };
  }
}
