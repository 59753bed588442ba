import { Action } from "../wire/codes.ts";
import { isAllocatedAfter } from "./blocks.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import {
  freeBlocks,
  freeSpace,
  isReserved,
  type FreeSpace,
  type SegmentAtMoment,
} from "./moment.ts";

/** What `Recording.fragmentation(at)` tells of a moment, in bytes. */
export interface Fragmentation extends FreeSpace {
  /** Share of the free bytes outside the largest free block. */
  readonly external: number;
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
  /** The bytes of each. */
  readonly freeBlocks: readonly number[];
}

/** The same of one pool and stream. */
export interface PoolFragmentation extends FreeSpace {
  readonly external: number;
  readonly pool: number;
  readonly stream: number;
  readonly reserved: number;
}

/** Where the reserved memory went that is not in use, after the event at `row`. */
export function fragmentationAfter(timeline: DeviceTimeline, row: number): Fragmentation {
  const { blocks, events } = timeline;
  const known = timeline.segmentsAfter(row).filter((each) => isReserved(events, each));
  const sums = { reserved: 0, requested: 0, allocated: 0, pendingFree: 0, inactiveSplit: 0 };
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
    const isExpandable = events.action[segment.origin] === Action.segment_map;
    if (segment.blocks.length > 0 && !isExpandable) {
      sums.inactiveSplit += freeSpace(freeBlocks([segment], blocks)).free;
    }
  }
  const { reserved, requested, allocated, pendingFree, inactiveSplit } = sums;
  const sizes = freeBlocks(known, blocks);
  const space = freeSpace(sizes);
  return {
    ...space,
    external: externalOf(space),
    reserved,
    requested,
    rounding: allocated - requested,
    pendingFree,
    inactiveSplit,
    cachedWhole: space.free - inactiveSplit,
    internal: allocated === 0 ? 0 : (allocated - requested) / allocated,
    utilization: reserved === 0 ? 0 : (allocated + pendingFree) / reserved,
    pools: byPool(timeline, known),
    freeBlocks: sizes,
  };
}

function externalOf({ free, largestFree }: FreeSpace): number {
  return free === 0 ? 0 : 1 - largestFree / free;
}

function byPool(
  { blocks, events }: DeviceTimeline,
  segments: readonly SegmentAtMoment[],
): PoolFragmentation[] {
  const groups = new Map<string, { pool: number; stream: number; own: SegmentAtMoment[] }>();
  for (const segment of segments) {
    const pool = events.pool[segment.origin] ?? 0;
    const stream = events.stream[segment.origin] ?? 0;
    const group = groups.get(`${pool} ${stream}`) ?? { pool, stream, own: [] };
    groups.set(`${pool} ${stream}`, group);
    group.own.push(segment);
  }
  return [...groups.values()]
    .sort((left, right) => left.pool - right.pool || left.stream - right.stream)
    .map(({ pool, stream, own }) => {
      const space = freeSpace(freeBlocks(own, blocks));
      const reserved = own.reduce((sum, { from, to }) => sum + to - from, 0);
      return { pool, stream, reserved, ...space, external: externalOf(space) };
    });
}

/** Free blocks of sizes from a power of two to the next. */
export interface SizeClass {
  readonly fromBytes: number;
  readonly count: number;
  readonly bytes: number;
}

/** The free blocks by powers of two, the largest first; sizes that none has are left out. */
export function sizeClasses(sizes: readonly number[]): SizeClass[] {
  const classes = new Map<number, { fromBytes: number; count: number; bytes: number }>();
  for (const bytes of sizes) {
    const fromBytes = 2 ** Math.floor(Math.log2(bytes));
    const known = classes.get(fromBytes) ?? { fromBytes, count: 0, bytes: 0 };
    classes.set(fromBytes, known);
    known.count += 1;
    known.bytes += bytes;
  }
  return [...classes.values()].sort((left, right) => right.fromBytes - left.fromBytes);
}
