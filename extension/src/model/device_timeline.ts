import { formatCount } from "../base/format.ts";
import { countAtMost } from "../base/search.ts";
import { findBlocks, type Blocks } from "./blocks.ts";
import { LevelLine } from "./decimation.ts";
import type { MemoryEvents } from "./events.ts";
import { AddressLayout } from "./layout.ts";
import { peakRow, runningLevels, type LevelName, type Levels } from "./levels.ts";
import { mapRects, type MapRects } from "./map_rects.ts";
import { findSegments, type Segments } from "./segments.ts";

/** Everything that is drawn of one device, derived from its events. */
export class DeviceTimeline {
  readonly events: MemoryEvents;
  readonly endNs: number;
  readonly blocks: Blocks;
  readonly segments: Segments;
  readonly levels: Levels;
  readonly lines: Readonly<Record<LevelName, LevelLine>>;
  readonly layout: AddressLayout;
  readonly rects: MapRects;
  /** The row after which the most bytes were allocated. */
  readonly peak: number;

  constructor(events: MemoryEvents, durationNs: number) {
    this.events = events;
    this.endNs = Math.max(durationNs, events.timeNs[events.count - 1] ?? 0, 1);
    this.blocks = findBlocks(events);
    this.segments = findSegments(events);
    this.levels = runningLevels(events, this.blocks);
    const { reserved, active, allocated, requested } = this.levels;
    this.lines = {
      reserved: new LevelLine(reserved),
      active: new LevelLine(active),
      allocated: new LevelLine(allocated),
      requested: new LevelLine(requested),
    };
    this.layout = new AddressLayout(this.segments, this.blocks);
    this.rects = mapRects(events, this.segments, this.blocks, this.layout, this.endNs);
    this.peak = peakRow(this.levels.allocated, events.initialCount);
  }

  /** Whether the allocator tells what it reserves; some only tell their blocks. */
  get knowsSegments(): boolean {
    return this.segments.count > 0 || this.blocks.count === 0;
  }

  /** The first row that a reader may choose: all that existed at the start. */
  get firstRow(): number {
    return Math.max(this.events.initialCount - 1, 0);
  }

  /** Where in the recording the state after an event is, in words. */
  placeOf(row: number): string {
    const { count, initialCount } = this.events;
    const recorded = count - initialCount;
    return row < initialCount
      ? `before the first of ${formatCount(recorded)} events`
      : `after event ${formatCount(row + 1 - initialCount)} of ${formatCount(recorded)}`;
  }

  /** The last event at or before a time. */
  rowAt(timeNs: number): number {
    return Math.max(countAtMost(this.events.timeNs, timeNs) - 1, this.firstRow);
  }
}
