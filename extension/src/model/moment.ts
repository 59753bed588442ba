import { Action } from "../wire/codes.ts";
import { countAtMost } from "../base/search.ts";
import { activeAfter, NO_EVENT, originOf, type Blocks } from "./blocks.ts";
import type { MemoryEvents } from "./events.ts";
import type { Segments } from "./segments.ts";

/** A segment as it was after one event; neighbours of one expandable segment are one. */
export interface SegmentAtMoment {
  readonly from: number;
  readonly to: number;
  /** The event that reserved it, or the first block where the allocator's segments are unknown. */
  readonly origin: number;
  /** Indices in `Blocks`, by address. */
  readonly blocks: readonly number[];
}

/** The segments after the event at `row`, by address. */
export function segmentsAfter(
  events: MemoryEvents,
  segments: Segments,
  blocks: Blocks,
  row: number,
): SegmentAtMoment[] {
  const ranges = joinMapped(events, segments, openSegments(segments, row));
  const starts = ranges.map((range) => range.from);
  const strays: SegmentAtMoment[] = [];
  for (const block of blocksByAddress(blocks, events, row)) {
    const from = blocks.address[block] ?? 0;
    const home = ranges[countAtMost(starts, from) - 1];
    if (home !== undefined && from < home.to) {
      home.blocks.push(block);
    } else {
      const to = from + (blocks.size[block] ?? 0);
      strays.push({
        from,
        to,
        origin: originOf(blocks, block),
        blocks: [block],
      });
    }
  }
  return [...ranges, ...strays].sort((left, right) => left.from - right.from);
}

function blocksByAddress(blocks: Blocks, events: MemoryEvents, row: number): number[] {
  const { address } = blocks;
  return activeAfter(blocks, events, row).sort(
    (left, right) => (address[left] ?? 0) - (address[right] ?? 0),
  );
}

function openSegments(segments: Segments, row: number): number[] {
  const open: number[] = [];
  for (let index = 0; index < segments.count; index += 1) {
    const ended = segments.ended[index] ?? NO_EVENT;
    if ((segments.begun[index] ?? 0) <= row && (ended === NO_EVENT || ended > row)) {
      open.push(index);
    }
  }
  return open.sort((left, right) => (segments.from[left] ?? 0) - (segments.from[right] ?? 0));
}

interface OpenRange {
  readonly from: number;
  to: number;
  readonly origin: number;
  readonly blocks: number[];
}

function joinMapped(
  events: MemoryEvents,
  segments: Segments,
  open: readonly number[],
): OpenRange[] {
  const ranges: OpenRange[] = [];
  for (const index of open) {
    const from = segments.from[index] ?? 0;
    const to = segments.to[index] ?? 0;
    const origin = segments.begun[index] ?? 0;
    const last = ranges.at(-1);
    if (last?.to === from && isSameExpandable(events, last.origin, origin)) {
      last.to = to;
    } else {
      ranges.push({ from, to, origin, blocks: [] });
    }
  }
  return ranges;
}

/** Whether two ranges, given the events that reserved them, are of one expandable segment. */
function isSameExpandable(events: MemoryEvents, left: number, right: number): boolean {
  return (
    events.action[left] === Action.segment_map &&
    events.action[right] === Action.segment_map &&
    events.pool[left] === events.pool[right]
  );
}

/** Calls `visit` for each block of a segment and each gap between them, by address. */
export function walkSegment(
  segment: SegmentAtMoment,
  { address, size }: Blocks,
  visit: (from: number, to: number, block: number | undefined) => void,
): void {
  let end = segment.from;
  const visitGap = (to: number): void => {
    if (to > end) {
      visit(end, to, undefined);
    }
  };
  for (const block of segment.blocks) {
    const from = address[block] ?? 0;
    visitGap(from);
    end = from + (size[block] ?? 0);
    visit(from, end, block);
  }
  visitGap(segment.to);
}

/** The bytes of each free block: a gap between blocks of a segment. */
export function freeBlocks(segments: readonly SegmentAtMoment[], blocks: Blocks): number[] {
  const sizes: number[] = [];
  for (const segment of segments) {
    walkSegment(segment, blocks, (from, to, block) => {
      if (block === undefined) {
        sizes.push(to - from);
      }
    });
  }
  return sizes;
}

/** Free blocks together, in bytes. */
export interface FreeSpace {
  readonly free: number;
  readonly largestFree: number;
}

export function freeSpace(sizes: readonly number[]): FreeSpace {
  const free = sizes.reduce((sum, bytes) => sum + bytes, 0);
  return { free, largestFree: sizes.reduce((most, bytes) => Math.max(most, bytes), 0) };
}

/** Whether a segment was reserved; strays hold one block of an allocator that does not tell. */
export function isReserved({ action }: MemoryEvents, { origin }: SegmentAtMoment): boolean {
  return action[origin] === Action.segment_alloc || action[origin] === Action.segment_map;
}
