import type { DeviceContents } from "./device_contents.ts";
import { groupedLanes } from "./grouped_lanes.ts";

/** A recording that begins with more than this share without any event is shown without it. */
const LONGEST_LEAD = 0.25;
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
