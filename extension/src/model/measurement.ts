import { Action } from "../wire/codes.ts";
import { countAtMost } from "../base/search.ts";
import { busyIn, type Busy } from "./busy.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import type { Lane } from "./lane.ts";

/** What happened on a device after one time and until another. */
export interface Measurement {
  readonly fromNs: number;
  readonly toNs: number;
  /** The most and the fewest bytes allocated at once, and the mean over time. */
  readonly peakBytes: number;
  readonly lowestBytes: number;
  readonly meanBytes: number;
  /** The blocks that were allocated in it, freed since or not. */
  readonly allocations: number;
  readonly allocatedBytes: number;
  /** Undefined where no stream was recorded. */
  readonly busy: Busy | undefined;
}

export function measure(
  timeline: DeviceTimeline,
  lanes: readonly Lane[],
  fromNs: number,
  toNs: number,
): Measurement {
  const { events, lines } = timeline;
  const first = countAtMost(events.timeNs, fromNs);
  const last = countAtMost(events.timeNs, toNs, first);
  let allocations = 0;
  let allocatedBytes = 0;
  for (let row = Math.max(first, events.initialCount); row < last; row += 1) {
    if (events.action[row] === Action.alloc) {
      allocations += 1;
      allocatedBytes += events.size[row] ?? 0;
    }
  }
  const { allocated } = lines;
  const before = allocated.levelBefore(first);
  const isChanged = first < last;
  return {
    fromNs,
    toNs,
    peakBytes: isChanged ? Math.max(before, allocated.largestIn(first, last)) : before,
    lowestBytes: isChanged ? Math.min(before, allocated.smallestIn(first, last)) : before,
    meanBytes: mean(before, allocated.values, events.timeNs, [first, last], [fromNs, toNs]),
    allocations,
    allocatedBytes,
    busy: lanes.some((lane) => lane.stream !== undefined) ? busyIn(lanes, fromNs, toNs) : undefined,
  };
}

/** The mean of a level between two times, given the changes between them and what it was before. */
function mean(
  before: number,
  levels: ArrayLike<number>,
  timeNs: ArrayLike<number>,
  [first, last]: readonly [number, number],
  [fromNs, toNs]: readonly [number, number],
): number {
  let level = before;
  let sinceNs = fromNs;
  let sum = 0;
  for (let row = first; row < last; row += 1) {
    const now = timeNs[row] ?? 0;
    sum += level * (now - sinceNs);
    level = levels[row] ?? 0;
    sinceNs = now;
  }
  sum += level * (toNs - sinceNs);
  return toNs > fromNs ? sum / (toNs - fromNs) : level;
}
