import { Action } from "../wire/codes.ts";
import { isAllocatedAfter } from "./blocks.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import { isReserved, walkSegment, type SegmentAtMoment } from "./moment.ts";

/** A free block at a moment. */
export interface FreeBlock {
  readonly address: number;
  readonly bytes: number;
  readonly stream: number;
  readonly pool: number;
}

/** Free blocks together, in bytes. */
interface FreeSpace {
  readonly free: number;
  readonly largestFree: number;
  /** Share of the free bytes outside the largest free block. */
  readonly external: number;
}

/** What `Recording.fragmentation(at)` tells of a moment, in bytes. */
export interface Fragmentation extends FreeSpace {
  readonly reserved: number;
  readonly requested: number;
  readonly rounding: number;
  readonly pendingFree: number;
  readonly inactiveSplit: number;
  readonly cachedWhole: number;
  /** Share of the allocated bytes that nobody asked for. */
  readonly internal: number;
  /** Share of the reserved bytes that are active. */
  readonly utilization: number;
  readonly pools: readonly PoolFragmentation[];
  readonly freeBlocks: readonly FreeBlock[];
}

/** The same of one pool and stream. */
export interface PoolFragmentation extends FreeSpace {
  readonly pool: number;
  readonly stream: number;
  readonly reserved: number;
}

/** Where the reserved memory went that is not in use, after the event at `row`. */
export function fragmentationAfter(timeline: DeviceTimeline, row: number): Fragmentation {
  const { blocks, events } = timeline;
  const known = timeline.segmentsAfter(row).filter((each) => isReserved(events, each));
  const sums = { reserved: 0, requested: 0, allocated: 0, pendingFree: 0, inactiveSplit: 0 };
  const freeBlocks: FreeBlock[] = [];
  for (const segment of known) {
    sums.reserved += segment.to - segment.from;
    for (const block of segment.blocks) {
      const bytes = blocks.size[block] ?? 0;
      if (isAllocatedAfter(blocks, block, row)) {
        sums.allocated += bytes;
        sums.requested += events.requestedSize[blocks.allocated[block] ?? 0] ?? 0;
      } else {
        sums.pendingFree += bytes;
      }
    }
    const gaps = gapsOf(timeline, segment);
    const isExpandable = events.action[segment.origin] === Action.segment_map;
    if (segment.blocks.length > 0 && !isExpandable) {
      sums.inactiveSplit += freeSpace(gaps).free;
    }
    freeBlocks.push(...gaps);
  }
  const { reserved, requested, allocated, pendingFree, inactiveSplit } = sums;
  const space = freeSpace(freeBlocks);
  return {
    ...space,
    reserved,
    requested,
    rounding: allocated - requested,
    pendingFree,
    inactiveSplit,
    cachedWhole: space.free - inactiveSplit,
    internal: allocated === 0 ? 0 : (allocated - requested) / allocated,
    utilization: reserved === 0 ? 0 : (allocated + pendingFree) / reserved,
    pools: byPool(timeline, known, freeBlocks),
    freeBlocks,
  };
}

function freeSpace(blocks: readonly FreeBlock[]): FreeSpace {
  const free = blocks.reduce((sum, { bytes }) => sum + bytes, 0);
  const largestFree = blocks.reduce((high, { bytes }) => Math.max(high, bytes), 0);
  return { free, largestFree, external: free === 0 ? 0 : 1 - largestFree / free };
}

function gapsOf({ blocks, events }: DeviceTimeline, segment: SegmentAtMoment): FreeBlock[] {
  const stream = events.stream[segment.origin] ?? 0;
  const pool = events.pool[segment.origin] ?? 0;
  const gaps: FreeBlock[] = [];
  walkSegment(segment, blocks, (from, to, block) => {
    if (block === undefined) {
      gaps.push({ address: from, bytes: to - from, stream, pool });
    }
  });
  return gaps;
}

function byPool(
  { events }: DeviceTimeline,
  segments: readonly SegmentAtMoment[],
  freeBlocks: readonly FreeBlock[],
): PoolFragmentation[] {
  const reserved = new Map<string, { pool: number; stream: number; reserved: number }>();
  for (const { origin, from, to } of segments) {
    const pool = events.pool[origin] ?? 0;
    const stream = events.stream[origin] ?? 0;
    const known = reserved.get(`${pool} ${stream}`) ?? { pool, stream, reserved: 0 };
    known.reserved += to - from;
    reserved.set(`${pool} ${stream}`, known);
  }
  return [...reserved.values()]
    .sort((left, right) => left.pool - right.pool || left.stream - right.stream)
    .map((each) => {
      const own = freeBlocks.filter(
        ({ pool, stream }) => pool === each.pool && stream === each.stream,
      );
      return { ...each, ...freeSpace(own) };
    });
}

/** Free blocks of sizes from a power of two to the next. */
export interface SizeClass {
  readonly fromBytes: number;
  readonly count: number;
  readonly bytes: number;
}

/** The free blocks by powers of two, the largest first; sizes that none has are left out. */
export function sizeClasses(freeBlocks: readonly FreeBlock[]): SizeClass[] {
  const classes = new Map<number, { fromBytes: number; count: number; bytes: number }>();
  for (const { bytes } of freeBlocks) {
    const fromBytes = 2 ** Math.floor(Math.log2(bytes));
    const known = classes.get(fromBytes) ?? { fromBytes, count: 0, bytes: 0 };
    classes.set(fromBytes, known);
    known.count += 1;
    known.bytes += bytes;
  }
  return [...classes.values()].sort((left, right) => right.fromBytes - left.fromBytes);
}
