import { Action } from "../wire/codes.ts";
import { GrowingWholes } from "../base/growing.ts";
import { NO_EVENT, type Blocks } from "./blocks.ts";
import { LevelLine } from "./decimation.ts";
import type { MemoryEvents } from "./events.ts";

export const LEVEL_NAMES = ["reserved", "active", "allocated", "requested"] as const;
export type LevelName = (typeof LEVEL_NAMES)[number];

type ByName<T> = Readonly<Record<LevelName, T>>;

/**
 * The totals after each event, in bytes.
 *
 * Exact running sums, with the rules of torch.cuda.memory_stats: a requested free ends `allocated`,
 * a completed one ends `active` and `requested`.
 */
export class Levels {
  readonly lines: ByName<LevelLine> = each(() => new LevelLine());
  /** The first row with the most bytes allocated, from the start of the recording on. */
  peak = 0;
  #peakBytes = -Infinity;
  readonly #columns = each(() => new GrowingWholes());

  /** Takes in the events that were added since the last call, once their blocks are known. */
  extend(events: MemoryEvents, blocks: Blocks): void {
    const first = this.#columns.allocated.length;
    const added = each(() => new Float64Array(events.count - first));
    blocks.changesIn(events, first, events.count, (_, bytes, row) => {
      added.allocated[row - first] = bytes;
    });
    for (let row = first; row < events.count; row += 1) {
      const size = events.size[row] ?? 0;
      const block = blocks.blockOf(row);
      const begun = blocks.allocated[block] ?? NO_EVENT;
      const action = events.action[row] ?? 0;
      if (action === Action.segment_alloc || action === Action.segment_map) {
        added.reserved[row - first] = size;
      } else if (action === Action.segment_free || action === Action.segment_unmap) {
        added.reserved[row - first] = -size;
      } else if (begun !== NO_EVENT && action !== Action.free_requested) {
        const sign = action === Action.alloc ? 1 : -1;
        added.active[row - first] = sign * (blocks.size[block] ?? 0);
        added.requested[row - first] = sign * (events.requestedSize[begun] ?? 0);
      }
    }
    for (const name of LEVEL_NAMES) {
      const column = this.#columns[name];
      column.append(runningSums(added[name], column.at(first - 1)));
      this.lines[name].extend(column.view());
    }
    this.#notePeak(first, events);
  }

  reserve(count: number): void {
    for (const name of LEVEL_NAMES) {
      this.#columns[name].reserve(count);
    }
  }

  #notePeak(first: number, { count, initialCount }: MemoryEvents): void {
    const earliest = Math.max(initialCount - 1, 0);
    if (this.peak < earliest) {
      this.peak = earliest;
      this.#peakBytes = -Infinity;
    }
    const from = Math.max(first, earliest);
    const row = this.lines.allocated.largestRow(from, count);
    const bytes = this.lines.allocated.values[row] ?? -Infinity;
    if (bytes > this.#peakBytes) {
      this.peak = row;
      this.#peakBytes = bytes;
    }
  }
}

/** Turns changes into sums from a start on, in place. */
function runningSums(changes: Float64Array<ArrayBuffer>, start: number): Float64Array<ArrayBuffer> {
  let sum = start;
  for (let place = 0; place < changes.length; place += 1) {
    sum += changes[place] ?? 0;
    changes[place] = sum;
  }
  return changes;
}

function each<T>(create: () => T): ByName<T> {
  return { reserved: create(), active: create(), allocated: create(), requested: create() };
}
