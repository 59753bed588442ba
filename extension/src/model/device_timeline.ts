import { formatCount } from "../base/format.ts";
import { GrowingWholes, type Wholes } from "../base/growing.ts";
import { countAtMost } from "../base/search.ts";
import { Blocks, NO_EVENT } from "./blocks.ts";
import type { LevelLine } from "./decimation.ts";
import { noMemoryEvents } from "./event_log.ts";
import type { MemoryEvents } from "./events.ts";
import { AddressLayout } from "./layout.ts";
import { Levels, type LevelName } from "./levels.ts";
import { segmentsAfter, type SegmentAtMoment } from "./moment.ts";
import { Segments } from "./segments.ts";

/** State after an event; final unless a later free reveals an older block. */
interface Moment {
  readonly row: number;
  readonly unannounced: number;
  readonly segments: readonly SegmentAtMoment[];
}

/** Everything that is drawn of one device, derived from its events; it goes on as they do. */
export class DeviceTimeline {
  readonly blocks = new Blocks();
  readonly segments = new Segments();
  readonly #levels = new Levels();
  readonly lines: Readonly<Record<LevelName, LevelLine>> = this.#levels.lines;
  readonly layout = new AddressLayout();
  events = noMemoryEvents();
  endNs = 1;
  #moment: Moment | undefined;
  readonly #regions = new GrowingWholes();
  #placedSegments = 0;

  constructor(events: MemoryEvents = noMemoryEvents(), durationNs = 0) {
    this.extend(events, durationNs);
  }

  /** Takes events that begin with those known; the cost is that of those that are new. */
  extend(events: MemoryEvents, durationNs: number): void {
    this.events = events;
    this.endNs = Math.max(durationNs, this.endNs, events.timeNs[events.count - 1] ?? 0);
    this.blocks.extend(events);
    this.segments.extend(events);
    this.#levels.extend(events, this.blocks);
    this.#place();
  }

  /** Makes room for events that will come, half of which are allocations. */
  reserve(events: number): void {
    this.#levels.reserve(events);
    this.blocks.reserveEvents(events);
    this.#regions.reserve(events >>> 1);
  }

  /** The row after which the most bytes were allocated. */
  get peak(): number {
    return this.#levels.peak;
  }

  /** The region of the layout that each block lies in. */
  get regions(): Wholes {
    return this.#regions.view();
  }

  /** Whether the allocator reports its segments; some report only blocks. */
  get knowsSegments(): boolean {
    return this.segments.count > 0 || this.blocks.count === 0;
  }

  /** The first row that a reader may choose: all that existed at the start. */
  get firstRow(): number {
    return Math.max(this.events.initialCount - 1, 0);
  }

  /** The first event after the begin of a window, and the first after its end. */
  rowsIn({ fromNs, toNs }: { fromNs: number; toNs: number }): readonly [number, number] {
    const first = Math.max(countAtMost(this.events.timeNs, fromNs), this.events.initialCount);
    return [first, Math.max(first, countAtMost(this.events.timeNs, toNs))];
  }

  /** The first row with the most bytes allocated from before the event at `first` until `end`. */
  peakIn(first: number, end: number): number {
    return this.lines.allocated.largestRow(Math.max(first - 1, 0), end);
  }

  /** Where in the recording the state after an event is, in words. */
  placeOf(row: number): string {
    const { count, initialCount } = this.events;
    const recorded = count - initialCount;
    return row < initialCount
      ? `before the first of ${formatCount(recorded)} events`
      : `after event ${formatCount(row + 1 - initialCount)} of ${formatCount(recorded)}`;
  }

  /** From when to when a block existed; from 0 if it did before the first event. */
  lifeOf(block: number): { readonly fromNs: number; readonly toNs: number } {
    const { timeNs } = this.events;
    const { allocated, freeCompleted } = this.blocks;
    return {
      fromNs: timeNs[allocated[block] ?? NO_EVENT] ?? 0,
      toNs: timeNs[freeCompleted[block] ?? NO_EVENT] ?? this.endNs,
    };
  }

  /** The segments after an event, by address; the last answer is kept, for two charts ask. */
  segmentsAfter(row: number): readonly SegmentAtMoment[] {
    const { unannounced } = this.blocks;
    if (this.#moment?.row !== row || this.#moment.unannounced !== unannounced) {
      const segments = segmentsAfter(this.events, this.segments, this.blocks, row);
      this.#moment = { row, unannounced, segments };
    }
    return this.#moment.segments;
  }

  /** Finds the places of new segments and blocks. */
  #place(): void {
    const { segments, blocks, layout } = this;
    for (; this.#placedSegments < segments.count; this.#placedSegments += 1) {
      const at = this.#placedSegments;
      layout.add(segments.from[at] ?? 0, segments.to[at] ?? 0);
    }
    const first = this.#regions.length;
    const regions = new Float64Array(blocks.count - first);
    for (let block = first; block < blocks.count; block += 1) {
      const address = blocks.address[block] ?? 0;
      regions[block - first] = layout.add(address, address + (blocks.size[block] ?? 0));
    }
    this.#regions.append(regions);
    layout.settle();
  }
}
