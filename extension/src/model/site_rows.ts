import { isAllocatedAfter, NO_EVENT, type Blocks } from "./blocks.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import { Action } from "./events.ts";
import { numbersOf } from "./grouping.ts";
import type { CallSite, Stacks } from "./stacks.ts";

/** Bytes and counts of blocks. */
export interface Held {
  bytes: number;
  count: number;
}

/** What call stacks allocated: at the peak, at the end, and over the recording. */
export interface StackHoldings {
  readonly atPeak: Held;
  readonly atEnd: Held;
  readonly inAll: Held;
  /** The largest block of the call stack, at the peak if it has one then. */
  largest: number;
}

export const HOLDING_NAMES = ["atPeak", "atEnd", "inAll"] as const;
export type HoldingName = (typeof HOLDING_NAMES)[number];

/** What `Recording.sites("line")` has in a row, at the peak and at the end. */
export interface SiteRow extends StackHoldings {
  readonly callSite: CallSite;
  /** The call stacks that lead to the line, most bytes at the peak first. */
  readonly stacks: readonly number[];
}

/**
 * What each call stack holds and allocated; bytes are those of blocks, as rounded.
 *
 * Of a window, as of `Recording.window`: peak and end are its own, and what was there before it is
 * not allocated in it.
 */
export function stackHoldings(
  timeline: DeviceTimeline,
  window?: { readonly fromNs: number; readonly toNs: number },
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
      const holdings = ofStack.get(stack) ?? nothingHeld(block);
      ofStack.set(stack, holdings);
      add(holdings, blocks, block, [isAtPeak, isAtEnd, isNew]);
    }
  }
  return ofStack;
}

function add(
  holdings: StackHoldings,
  blocks: Blocks,
  block: number,
  [isAtPeak, isAtEnd, isNew]: readonly [boolean, boolean, boolean],
): void {
  const bytes = blocks.size[block] ?? 0;
  const isFirstAtPeak = isAtPeak && holdings.atPeak.count === 0;
  const isLarger = bytes > (blocks.size[holdings.largest] ?? 0);
  if (isFirstAtPeak || (isLarger && (isAtPeak || holdings.atPeak.count === 0))) {
    holdings.largest = block;
  }
  for (const [held, isHeld] of [
    [holdings.atPeak, isAtPeak],
    [holdings.atEnd, isAtEnd],
    [holdings.inAll, isNew],
  ] as const) {
    held.bytes += isHeld ? bytes : 0;
    held.count += isHeld ? 1 : 0;
  }
}

/** The lines that allocated, most bytes at the peak first. */
export function siteRows(
  holdings: ReadonlyMap<number, StackHoldings>,
  callStacks: Stacks,
  blocks: Blocks,
): SiteRow[] {
  const lineOf = numbersOf((id) => callStacks.callSiteOf(id).site);
  const lines = new Map<number, SiteRow & { stacks: number[] }>();
  const largestFirst = [...holdings].sort(([, left], [, right]) => compare(left, right));
  for (const [stack, held] of largestFirst) {
    const line = lineOf(stack);
    const row = lines.get(line) ?? {
      ...nothingHeld(held.largest),
      callSite: callStacks.callSiteOf(stack),
      stacks: [],
    };
    lines.set(line, row);
    row.stacks.push(stack);
    for (const name of HOLDING_NAMES) {
      row[name].bytes += held[name].bytes;
      row[name].count += held[name].count;
    }
    const isComparable = held.atPeak.count > 0 || row.atPeak.count === 0;
    if (isComparable && (blocks.size[held.largest] ?? 0) > (blocks.size[row.largest] ?? 0)) {
      row.largest = held.largest;
    }
  }
  return [...lines.values()].sort(compare);
}

function compare(left: StackHoldings, right: StackHoldings): number {
  return (
    right.atPeak.bytes - left.atPeak.bytes ||
    right.inAll.bytes - left.inAll.bytes ||
    right.inAll.count - left.inAll.count
  );
}

function nothingHeld(largest: number): StackHoldings {
  const none = (): Held => ({ bytes: 0, count: 0 });
  return { atPeak: none(), atEnd: none(), inAll: none(), largest };
}
