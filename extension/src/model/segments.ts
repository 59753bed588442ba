import { Action } from "../wire/codes.ts";
import { columnsOf } from "../base/growing.ts";
import { countLeading } from "../base/search.ts";
import { NO_EVENT } from "./blocks.ts";
import type { MemoryEvents } from "./events.ts";

/** An open range of addresses, by its place in the columns. */
interface OpenRange {
  from: number;
  to: number;
  place: number;
}

/** Ranges of reserved addresses and the events between which they were reserved, as columns. */
export class Segments extends columnsOf({
  from: "number",
  to: "number",
  // The event that reserved the range; its stream and pool are the segment's.
  begun: "index",
  // The event that gave the range back, or NO_EVENT.
  ended: "index",
}) {
  /** Apart from each other, and ascending. */
  readonly #open: OpenRange[] = [];
  #taken = 0;

  /**
   * Follows segment_alloc, segment_free, segment_map and segment_unmap in the events that were
   * added since the last call. A range given back in part becomes several.
   */
  extend(events: MemoryEvents): void {
    for (let row = this.#taken; row < events.count; row += 1) {
      const action = events.action[row] ?? 0;
      if (action >= Action.segment_alloc && action <= Action.segment_unmap) {
        const from = events.address[row] ?? 0;
        const to = from + (events.size[row] ?? 0);
        if (action === Action.segment_alloc || action === Action.segment_map) {
          const place = this.#push(from, to, row);
          this.#open.splice(firstEndingAfter(this.#open, from), 0, { from, to, place });
        } else {
          this.#cutOut(from, to, row);
        }
      }
    }
    this.#taken = events.count;
    this.show();
  }

  #push(from: number, to: number, begun: number): number {
    this.put({ from, to, begun, ended: NO_EVENT });
    return this.length - 1;
  }

  /** Ends what lies in [from, to) and keeps the rest of a range that is given back in part. */
  #cutOut(from: number, to: number, row: number): void {
    const first = firstEndingAfter(this.#open, from);
    const kept: OpenRange[] = [];
    let next = first;
    for (let range = this.#open[next]; range !== undefined && range.from < to; next += 1) {
      kept.push(...this.#cut(range, from, to, row));
      range = this.#open[next + 1];
    }
    this.#open.splice(first, next - first, ...kept);
  }

  /** Ends the part of a range that lies in [from, to); returns what is left of it. */
  #cut(
    { from: begin, to: end, place }: OpenRange,
    from: number,
    to: number,
    row: number,
  ): OpenRange[] {
    this.columns.from.set(place, Math.max(begin, from));
    this.columns.to.set(place, Math.min(end, to));
    this.columns.ended.set(place, row);
    return [
      { from: begin, to: Math.min(end, from) },
      { from: Math.max(begin, to), to: end },
    ]
      .filter((rest) => rest.to > rest.from)
      .map((rest) => ({
        ...rest,
        place: this.#push(rest.from, rest.to, this.columns.begun.at(place)),
      }));
  }
}

/** The place of the first range that ends after an address; ranges are apart and ascend. */
function firstEndingAfter(open: readonly OpenRange[], address: number): number {
  return countLeading(open.length, (place) => (open[place]?.to ?? Infinity) <= address);
}
