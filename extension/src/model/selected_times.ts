import type { DeviceTimeline } from "./device_timeline.ts";
import type { Selected } from "./selected.ts";
import { OPEN } from "./ranges.ts";
import { tableOfSpan } from "./span_kinds.ts";
import type { GpuActivities } from "./gpu_activities.ts";

/** From when to when a block lived or a span lasted. */
export function selectedTimes(
  selected: Selected,
  timeline: DeviceTimeline,
  gpu: GpuActivities,
): { readonly fromNs: number; readonly toNs: number } {
  if (selected.kind === "gap") {
    return selected.gap;
  }
  if (selected.kind === "block") {
    return timeline.lifeOf(selected.block);
  }
  const { fromNs, toNs }: Times = gpu[tableOfSpan(selected.spanKind)];
  const end = toNs[selected.row] ?? OPEN;
  return { fromNs: fromNs[selected.row] ?? 0, toNs: end === OPEN ? timeline.endNs : end };
}

/** When the rows of a table begin and end. */
export interface Times {
  readonly fromNs: Float64Array<ArrayBuffer>;
  readonly toNs: Float64Array<ArrayBuffer>;
}
