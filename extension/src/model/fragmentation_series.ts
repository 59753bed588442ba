import { countAtMost } from "../base/search.ts";
import { NO_EVENT } from "./blocks.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import { Action } from "./events.ts";
import { freeBytes, isReserved, segmentsHolding } from "./moment.ts";

/** Free bytes in segments, and the largest free block, at some of the events. */
export interface FragmentationSeries {
  readonly rows: readonly number[];
  readonly timeNs: readonly number[];
  readonly free: readonly number[];
  readonly largestFree: readonly number[];
}

/** At most `count` moments from one time to another, after events that are equally far apart. */
export function fragmentationSeries(
  timeline: DeviceTimeline,
  fromNs: number,
  toNs: number,
  count: number,
): FragmentationSeries {
  const { blocks, events, segments } = timeline;
  const rows = chosenRows(timeline, fromNs, toNs, count);
  const series = { rows, timeNs: [], free: [], largestFree: [] } as {
    rows: number[];
    timeNs: number[];
    free: number[];
    largestFree: number[];
  };
  const active = new Set<number>();
  const blockOf = new Int32Array(events.count).fill(NO_EVENT);
  blocks.freeCompleted.forEach((row, block) => {
    if (row !== NO_EVENT) {
      blockOf[row] = block;
    }
  });
  blocks.allocated.forEach((row, block) => {
    if (row === NO_EVENT) {
      active.add(block);
    } else {
      blockOf[row] = block;
    }
  });
  let next = 0;
  for (const row of rows) {
    for (; next <= row; next += 1) {
      follow(active, blockOf[next] ?? NO_EVENT, events.action[next]);
    }
    const byAddress = [...active].sort(
      (left, right) => (blocks.address[left] ?? 0) - (blocks.address[right] ?? 0),
    );
    const reserved = segmentsHolding(events, segments, blocks, row, byAddress).filter((each) =>
      isReserved(events, each),
    );
    const { largest, total } = freeBytes(reserved, blocks);
    series.timeNs.push(events.timeNs[row] ?? 0);
    series.free.push(total);
    series.largestFree.push(largest);
  }
  return series;
}

function follow(active: Set<number>, block: number, action: number | undefined): void {
  if (block !== NO_EVENT && action === Action.alloc) {
    active.add(block);
  } else if (block !== NO_EVENT) {
    active.delete(block);
  }
}

function chosenRows(
  { events, firstRow }: DeviceTimeline,
  fromNs: number,
  toNs: number,
  count: number,
): number[] {
  const first = Math.max(countAtMost(events.timeNs, fromNs) - 1, firstRow);
  const last = Math.max(countAtMost(events.timeNs, toNs) - 1, first);
  if (events.count === 0) {
    return [];
  }
  const steps = Math.min(count - 1, last - first);
  return Array.from({ length: steps + 1 }, (_, step) =>
    steps === 0 ? first : first + Math.round((step * (last - first)) / steps),
  );
}
