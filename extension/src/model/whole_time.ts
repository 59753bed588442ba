import type { DeviceContents } from "./device_contents.ts";
import type { Iteration } from "./conclusions.ts";
import { groupedLanes } from "./grouped_lanes.ts";

/** A recording that begins with more than this share without any event is shown without it. */
const LONGEST_LEAD = 0.25;
/** After a longer one, as a share of the time shown, only the rest is shown at first. */
const LONGEST_WARM_UP = 0.5;
/** What is left of it, as a share of the rest. */
const LEFT = 0.02;

/** The time that the charts of a device show: until the end, from the begin or the first event. */
export function wholeOf(contents: DeviceContents): { fromNs: number; toNs: number } {
  const { endNs, events } = contents.timeline;
  const begins = groupedLanes(contents).flatMap(({ stack }) =>
    stack.rows.map(({ fromNs }) => fromNs[0] ?? endNs),
  );
  const recordedNs = contents.gpu.bounds?.fromNs ?? endNs;
  const firstEventNs = events.timeNs[events.initialCount] ?? endNs;
  const first = Math.min(firstEventNs, recordedNs, endNs, ...begins);
  const isCut = first < endNs && first > LONGEST_LEAD * endNs;
  return { fromNs: isCut ? Math.floor(first - LEFT * (endNs - first)) : 0, toNs: endNs };
}

/** The part of the time at which a reader looks first: the iterations, after a long warm-up. */
export function firstShown(
  contents: DeviceContents,
  [first]: readonly Iteration[],
): readonly [fromNs: number, toNs: number] | undefined {
  const { fromNs, toNs } = wholeOf(contents);
  const { events, peak } = contents.timeline;
  const firstNs = Math.min(first?.[0] ?? fromNs, events.timeNs[peak] ?? toNs);
  const isLate = firstNs - fromNs > LONGEST_WARM_UP * (toNs - fromNs);
  return isLate ? [Math.floor(firstNs - LEFT * (toNs - firstNs)), toNs] : undefined;
}
