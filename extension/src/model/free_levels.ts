import { Action } from "../wire/codes.ts";
import { GrowingWholes } from "../base/growing.ts";
import { countLeading } from "../base/search.ts";
import { isActiveAfter, NO_EVENT } from "./blocks.ts";
import { LevelLine } from "./decimation.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import { FreeSpans } from "./free_spans.ts";
import { isSameExpandable } from "./moment.ts";

/** The free bytes in segments after each event, and the bytes of the largest free block. */
export class FreeLevels {
  readonly timeline: DeviceTimeline;
  #unannounced = 0;
  #state: FreeState;

  constructor(timeline: DeviceTimeline) {
    this.timeline = timeline;
    this.#unannounced = timeline.blocks.unannounced;
    this.#state = new FreeState(timeline);
  }

  get free(): LevelLine {
    return this.#state.free;
  }

  get largest(): LevelLine {
    return this.#state.largest;
  }

  /** Takes in at most so many new events; returns whether there are more. */
  extend(count: number): boolean {
    const { blocks, events } = this.timeline;
    if (blocks.unannounced !== this.#unannounced) {
      // A block that was never allocated has existed from the start.
      this.#unannounced = blocks.unannounced;
      this.#state = new FreeState(this.timeline);
    }
    return this.#state.extend(count) < events.count;
  }
}

interface Range {
  readonly from: number;
  readonly to: number;
  /** The event that reserved it. */
  readonly row: number;
}

/** What is reserved and what is free after some events, and the levels until then. */
class FreeState {
  readonly free = new LevelLine();
  readonly largest = new LevelLine();
  readonly #freeBytes = new GrowingWholes();
  readonly #largestBytes = new GrowingWholes();
  readonly #timeline: DeviceTimeline;
  /** Reserved addresses, ascending. */
  readonly #ranges: Range[] = [];
  readonly #spans = new FreeSpans();
  /** Blocks that exist outside segments, of allocators that do not expose all of them. */
  readonly #outside = new Set<number>();

  constructor(timeline: DeviceTimeline) {
    this.#timeline = timeline;
    const { allocated, unannounced } = timeline.blocks;
    if (unannounced > 0) {
      allocated.forEach((row, block) => row === NO_EVENT && this.#outside.add(block));
    }
  }

  /** Takes in at most so many events; returns how many have been taken in. */
  extend(count: number): number {
    const last = Math.min(this.#freeBytes.length + count, this.#timeline.events.count);
    for (let row = this.#freeBytes.length; row < last; row += 1) {
      this.#take(row);
      this.#freeBytes.push(this.#spans.total);
      this.#largestBytes.push(this.#spans.largest);
    }
    this.free.extend(this.#freeBytes.view());
    this.largest.extend(this.#largestBytes.view());
    return last;
  }

  #take(row: number): void {
    const { events, blocks } = this.#timeline;
    const action = events.action[row] ?? 0;
    const block = blocks.blockOf(row);
    const from = events.address[row] ?? 0;
    const to = from + ((block === NO_EVENT ? events.size[row] : blocks.size[block]) ?? 0);
    if (action === Action.alloc) {
      if (this.#spans.cut(from, to) < to - from) {
        this.#outside.add(block);
      }
    } else if (action === Action.free_completed) {
      this.#outside.delete(block);
      this.#release(from, to);
    } else if (action === Action.segment_alloc || action === Action.segment_map) {
      this.#reserve({ from, to, row });
    } else if (action === Action.segment_free || action === Action.segment_unmap) {
      this.#unreserve(from, to, row);
    }
  }

  #release(from: number, to: number): void {
    for (let place = this.#firstEndingAfter(from); ; place += 1) {
      const range = this.#ranges[place];
      if (range === undefined || range.from >= to) {
        return;
      }
      this.#spans.add(Math.max(from, range.from), Math.min(to, range.to), this.#isWall);
    }
  }

  #reserve(range: Range): void {
    this.#ranges.splice(this.#firstEndingAfter(range.from), 0, range);
    this.#spans.cut(range.from, range.to);
    this.#spans.add(range.from, range.to, this.#isWall);
    const { address, size } = this.#timeline.blocks;
    for (const block of this.#outside) {
      const from = address[block] ?? 0;
      this.#spans.cut(from, from + (size[block] ?? 0));
    }
  }

  #unreserve(from: number, to: number, row: number): void {
    const first = this.#firstEndingAfter(from);
    const isLater = (range: Range): boolean => range.from >= to;
    const count = this.#ranges.slice(first).findIndex(isLater);
    const cut = this.#ranges.splice(first, count < 0 ? Infinity : count);
    const rest = cut.flatMap((range) => [
      { ...range, to: Math.min(range.to, from) },
      { ...range, from: Math.max(range.from, to) },
    ]);
    this.#ranges.splice(first, 0, ...rest.filter((range) => range.from < range.to));
    const bytes = cut.reduce(
      (sum, range) => sum + Math.min(range.to, to) - Math.max(range.from, from),
      0,
    );
    if (this.#spans.cut(from, to) < bytes) {
      this.#leaveOutside(from, to, row);
    }
  }

  /** Keeps in mind the blocks that exist in a range which is no longer reserved. */
  #leaveOutside(from: number, to: number, row: number): void {
    const { blocks } = this.#timeline;
    blocks.address.forEach((address, block) => {
      const isIn = address < to && address + (blocks.size[block] ?? 0) > from;
      if (isIn && isActiveAfter(blocks, block, row)) {
        this.#outside.add(block);
      }
    });
  }

  #firstEndingAfter(address: number): number {
    const ranges = this.#ranges;
    return countLeading(ranges.length, (place) => (ranges[place]?.to ?? Infinity) <= address);
  }

  /** Whether a segment begins at an address that is not joined to the one before it. */
  readonly #isWall = (address: number): boolean => {
    const place = this.#firstEndingAfter(address);
    const [before, range] = [this.#ranges[place - 1], this.#ranges[place]];
    return (
      range?.from === address &&
      !(before?.to === address && isSameExpandable(this.#timeline.events, before.row, range.row))
    );
  };
}
