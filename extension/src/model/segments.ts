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
  let open: OpenRange[] = [];
  for (let row = 0; row < events.count; row += 1) {
    const action = events.action[row];
    const from = events.address[row] ?? 0;
    const to = from + (events.size[row] ?? 0);
    if (action === Action.segmentAlloc || action === Action.segmentMap) {
      open.push({ from, to, begun: row });
    } else if (
      action === Action.segmentFree ||
      action === Action.segmentUnmap
    ) {
      open = cutOut(open, from, to, row, closed);
    }
  }
  for (const range of open) {
    closed.push(range.from, range.to, range.begun, NO_EVENT);
  }
  return closed.view();
}

/** Ends what lies in [from, to) and keeps the rest of a range that is given back in part. */
function cutOut(
  open: readonly OpenRange[],
  from: number,
  to: number,
  row: number,
  closed: SegmentColumns,
): OpenRange[] {
  return open.flatMap((range) => {
    const cutFrom = Math.max(range.from, from);
    const cutTo = Math.min(range.to, to);
    if (cutFrom >= cutTo) {
      return [range];
    }
    closed.push(cutFrom, cutTo, range.begun, row);
    const before = { ...range, to: cutFrom };
    const after = { ...range, from: cutTo };
    return [before, after].filter((rest) => rest.to > rest.from);
  });
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
