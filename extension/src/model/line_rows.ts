import { Action, ActivityKind } from "../wire/codes.ts";
import { isAllocatedAfter, NO_EVENT } from "./blocks.ts";
import type { DeviceContents } from "./device_contents.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import { covered, isIn, stackOfLaunch, type Window } from "./gpu_rows.ts";
import { lengthIn, numbersOf } from "./grouping.ts";
import type { CallSite, Frame } from "./stacks.ts";

/** The bytes that call stacks allocated: at the peak, at the end, and over the recording. */
export interface StackHoldings {
  atPeak: number;
  atEnd: number;
  inAll: number;
  /** The number of allocations over the recording. */
  allocations: number;
  /** The largest block of the call stack, at the peak if it has one then. */
  largest: number;
}

export type HoldingName = Exclude<keyof StackHoldings, "allocations" | "largest">;

const NOTHING = {
  liveBytes: 0,
  totalBytes: 0,
  totalCount: 0,
  kernelNs: 0,
  kernelCount: 0,
  copyNs: 0,
  copyBytes: 0,
  waitNs: 0,
  idleNs: 0,
};

/** The numbers of a line, as in `Recording.lines()`. */
export type LineSums = typeof NOTHING;

/** A row of `Recording.lines()`. */
export interface LineRow {
  readonly callSite: CallSite;
  /** Undefined where there is no call stack. */
  readonly frame: Frame | undefined;
  readonly sums: LineSums;
  /** One of its call stacks, that with most bytes at the peak if it allocated. */
  readonly stack: number;
  /** The largest block, at the peak if there is one then; undefined without blocks. */
  largest: number | undefined;
}

/**
 * What each call stack holds and allocated; bytes are those of blocks, as rounded.
 *
 * Of a window, as of `Recording.window`: peak and end are its own, and what was there before it is
 * not allocated in it.
 */
export function stackHoldings(
  timeline: DeviceTimeline,
  window?: Window,
): ReadonlyMap<number, StackHoldings> {
  const { blocks, events } = timeline;
  const [first, end] = window === undefined ? [0, events.count] : timeline.rowsIn(window);
  const peak = window === undefined ? timeline.peak : timeline.peakIn(first, end);
  const ofStack = new Map<number, StackHoldings>();
  for (let block = 0; block < blocks.count; block += 1) {
    const row = blocks.allocated[block] ?? NO_EVENT;
    if (row === NO_EVENT || row >= end) {
      continue;
    }
    const isNew =
      row >= Math.max(first, events.initialCount) && events.action[row] === Action.alloc;
    const isAtPeak = isAllocatedAfter(blocks, block, peak);
    const isAtEnd = isAllocatedAfter(blocks, block, end - 1);
    if (isNew || isAtPeak || isAtEnd) {
      const stack = events.stack[row] ?? 0;
      const held = ofStack.get(stack) ?? {
        atPeak: 0,
        atEnd: 0,
        inAll: 0,
        allocations: 0,
        largest: block,
      };
      ofStack.set(stack, held);
      const bytes = blocks.size[block] ?? 0;
      const isLarger = bytes > (blocks.size[held.largest] ?? 0);
      if (isAtPeak ? held.atPeak === 0 || isLarger : held.atPeak === 0 && isLarger) {
        held.largest = block;
      }
      held.atPeak += isAtPeak ? bytes : 0;
      held.atEnd += isAtEnd ? bytes : 0;
      held.inAll += isNew ? bytes : 0;
      held.allocations += isNew ? 1 : 0;
    }
  }
  return ofStack;
}

/** What each line of the program costs on a device, most bytes at the peak first. */
export function lineRows(contents: DeviceContents, window: Window): LineRow[] {
  const { stacks } = contents;
  const lineOf = numbersOf((stack) => stacks.callSiteOf(stack).site);
  const lines = new Map<number, LineRow>();
  const rowOf = (stack: number): LineRow => {
    const line = lineOf(stack);
    const known = lines.get(line);
    if (known !== undefined) {
      return known;
    }
    const row = {
      callSite: stacks.callSiteOf(stack),
      frame: stacks.lineFrameOf(stack),
      sums: { ...NOTHING },
      stack,
      largest: undefined,
    };
    lines.set(line, row);
    return row;
  };
  addMemory(contents, window, rowOf);
  addActivities(contents, window, rowOf);
  addWaits(contents, window, rowOf);
  return [...lines.values()].sort(compare);
}

/** The sums of the lines of a file, by line number. */
export function sumsByLine(rows: readonly LineRow[], filename: string): (line: number) => LineSums {
  const found = new Map<number, LineSums>();
  for (const { frame, sums } of rows) {
    if (frame?.filename === filename) {
      const known = found.get(frame.line) ?? { ...NOTHING };
      found.set(frame.line, known);
      for (const name of Object.keys(NOTHING) as (keyof LineSums)[]) {
        known[name] += sums[name];
      }
    }
  }
  return (line) => found.get(line) ?? NOTHING;
}

type RowOf = (stack: number) => LineRow;

function addMemory({ timeline }: DeviceContents, window: Window, rowOf: RowOf): void {
  const bytesOf = (block: number | undefined): number => timeline.blocks.size[block ?? -1] ?? -1;
  const heldFirst = [...stackHoldings(timeline, window)].sort(
    ([, left], [, right]) => right.atPeak - left.atPeak,
  );
  for (const [stack, { atPeak, inAll, allocations, largest }] of heldFirst) {
    const row = rowOf(stack);
    const isComparable = atPeak > 0 || row.sums.liveBytes === 0;
    if (isComparable && bytesOf(largest) > bytesOf(row.largest)) {
      row.largest = largest;
    }
    row.sums.liveBytes += atPeak;
    row.sums.totalBytes += inAll;
    row.sums.totalCount += allocations;
  }
}

function addActivities({ gpu, device }: DeviceContents, window: Window, rowOf: RowOf): void {
  const { activities } = gpu;
  const inside = covered(gpu, window);
  const stackOf = stackOfLaunch(gpu);
  let first = -1;
  for (let row = 0; row < activities.count; row += 1) {
    const kind = activities.kind[row];
    if (activities.device[row] !== device || kind === ActivityKind.range) {
      continue;
    }
    if (first < 0 || (activities.fromNs[row] ?? 0) < (activities.fromNs[first] ?? 0)) {
      first = row;
    }
    if (isIn(inside, activities, row)) {
      const { sums } = rowOf(stackOf(row));
      const lengthNs = lengthIn(inside, activities, row);
      if (kind === ActivityKind.kernel || kind === ActivityKind.graph) {
        sums.kernelNs += lengthNs;
        sums.kernelCount += 1;
      } else {
        sums.copyNs += lengthNs;
        sums.copyBytes += activities.bytes[row] ?? 0;
      }
    }
  }
  const idle = (fromNs: number, toNs: number, activity: number): void => {
    if (inside === undefined || (toNs > inside.fromNs && toNs <= inside.toNs)) {
      rowOf(stackOf(activity)).sums.idleNs += toNs - Math.max(fromNs, inside?.fromNs ?? 0);
    }
  };
  const gaps = gpu.idleGaps.of(device, 0)?.gaps;
  for (let gap = 0; gap < (gaps?.count ?? 0); gap += 1) {
    const activity = gaps?.source[gap] ?? -1;
    if (activity >= 0) {
      idle(gaps?.fromNs[gap] ?? 0, gaps?.toNs[gap] ?? 0, activity);
    }
  }
  // The gaps of a whole recording begin with its first activity, those of a window with it.
  if (window !== undefined && gpu.bounds === undefined && first >= 0) {
    idle(window.fromNs, activities.fromNs[first] ?? 0, first);
  }
}

function addWaits({ gpu, device }: DeviceContents, window: Window, rowOf: RowOf): void {
  const { hostWaits } = gpu;
  const inside = covered(gpu, window);
  for (let row = 0; row < hostWaits.count; row += 1) {
    const waited = hostWaits.device[row] ?? -1;
    if ((waited === device || waited < 0) && isIn(inside, hostWaits, row)) {
      rowOf(hostWaits.stack[row] ?? 0).sums.waitNs += lengthIn(inside, hostWaits, row);
    }
  }
}

const ORDER = ["liveBytes", "kernelNs", "copyNs", "waitNs", "totalBytes", "idleNs"] as const;

function compare(left: LineRow, right: LineRow): number {
  const name = ORDER.find((each) => left.sums[each] !== right.sums[each]);
  if (name !== undefined) {
    return right.sums[name] - left.sums[name];
  }
  return left.callSite.site < right.callSite.site ? -1 : 1;
}
