import { GrowingWholes } from "../base/growing.ts";
import { NO_EVENT, type Blocks } from "./blocks.ts";
import { LevelLine } from "./decimation.ts";
import { Action, type MemoryEvents } from "./events.ts";

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
  readonly #now = { reserved: 0, active: 0, allocated: 0, requested: 0 };

  /** Takes in the events that were added since the last call, once their blocks are known. */
  extend(events: MemoryEvents, blocks: Blocks): void {
    const first = this.#columns.allocated.length;
    const added = each(() => new Float64Array(events.count - first));
    for (let row = first; row < events.count; row += 1) {
      this.#count(events, row, blocks, blocks.blockOf(row));
      for (const name of LEVEL_NAMES) {
        added[name][row - first] = this.#now[name];
      }
      this.#notePeak(row, events.initialCount);
    }
    for (const name of LEVEL_NAMES) {
      this.#columns[name].append(added[name]);
      this.lines[name].extend(this.#columns[name].view());
    }
  }

  reserve(count: number): void {
    for (const name of LEVEL_NAMES) {
      this.#columns[name].reserve(count);
    }
  }

  #count(events: MemoryEvents, row: number, blocks: Blocks, block: number): void {
    const now = this.#now;
    const action = events.action[row];
    if (action === Action.segment_alloc || action === Action.segment_map) {
      now.reserved += events.size[row] ?? 0;
    } else if (action === Action.segment_free || action === Action.segment_unmap) {
      now.reserved -= events.size[row] ?? 0;
    }
    const begun = blocks.allocated[block] ?? NO_EVENT;
    if (block === NO_EVENT || begun === NO_EVENT) {
      return;
    }
    const size = blocks.size[block] ?? 0;
    const requested = events.requestedSize[begun] ?? 0;
    blocks.changesIn(events, row, row + 1, this.#allocate);
    if (action === Action.alloc) {
      now.active += size;
      now.requested += requested;
    } else if (action === Action.free_completed) {
      now.active -= size;
      now.requested -= requested;
    }
  }

  readonly #allocate = (_: number, bytes: number): void => {
    this.#now.allocated += bytes;
  };

  #notePeak(row: number, initialCount: number): void {
    const earliest = Math.max(initialCount - 1, 0);
    if (this.peak < earliest) {
      this.peak = earliest;
      this.#peakBytes = -Infinity;
    }
    if (row >= earliest && this.#now.allocated > this.#peakBytes) {
      this.peak = row;
      this.#peakBytes = this.#now.allocated;
    }
  }
}

function each<T>(create: () => T): ByName<T> {
  return { reserved: create(), active: create(), allocated: create(), requested: create() };
}
