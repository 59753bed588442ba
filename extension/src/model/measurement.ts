import { Action } from "../wire/codes.ts";
import { countAtMost } from "../base/search.ts";
import { busyIn, type Busy } from "./busy.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import type { Lane } from "./lane.ts";

/** What happened on a device after one time and until another. */
export interface Measurement {
  readonly fromNs: number;
  readonly toNs: number;
  /** The most bytes allocated at once. */
  readonly peakBytes: number;
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
  const before = lines.allocated.values[first - 1] ?? 0;
  return {
    fromNs,
    toNs,
    peakBytes: first < last ? Math.max(before, lines.allocated.largestIn(first, last)) : before,
    allocations,
    allocatedBytes,
    busy: lanes.some((lane) => lane.stream !== undefined) ? busyIn(lanes, fromNs, toNs) : undefined,
  };
}
