import { Action } from "../wire/codes.ts";
import { formatExactBytes, formatTime } from "../base/format.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import type { Stacks } from "./stacks.ts";

export type MarkKind = "out of memory" | "snapshot" | "memory returned" | "empty_cache()";

/** A moment that a reader looks for; `bytes` is what was asked for or given back to the device. */
export interface Mark {
  readonly kind: MarkKind;
  /** The first of its events. */
  readonly row: number;
  readonly timeNs: number;
  readonly bytes: number;
}

/** Allocations that failed, snapshots, calls of empty_cache, and where else segments went back. */
export function findMarks({ events }: DeviceTimeline): Mark[] {
  const { action, count, size, timeNs, requestedSize } = events;
  const marks: Mark[] = [];
  let first = 0;
  let returned = 0;
  const add = (kind: MarkKind, row: number, bytes: number): void => {
    marks.push({ kind, row, bytes, timeNs: timeNs[row] ?? 0 });
  };
  for (let row = 0; row <= count; row += 1) {
    const code = action[row];
    // Nearly all are those of blocks, and all events are looked at whenever some were added.
    if (returned === 0 && (code ?? Infinity) <= Action.free_completed) {
      continue;
    }
    const bytes = size[row] ?? 0;
    if (code === Action.segment_free || code === Action.segment_unmap) {
      first = returned === 0 ? row : first;
      returned += bytes;
      continue;
    }
    // What empty_cache gave back are the events before it.
    returned -= code === Action.empty_cache ? bytes : 0;
    if (returned > 0) {
      add("memory returned", first, returned);
    }
    returned = 0;
    if (code === Action.empty_cache) {
      add("empty_cache()", row, bytes);
    } else if (code === Action.oom) {
      add("out of memory", row, requestedSize[row] || bytes);
    } else if (code === Action.snapshot) {
      add("snapshot", row, 0);
    }
  }
  return marks;
}

export function describeMark(mark: Mark, { events }: DeviceTimeline, stacks: Stacks): string[] {
  const { kind, row, timeNs, bytes } = mark;
  const free = events.address[row] ?? 0;
  return [
    kind,
    `at ${formatTime(timeNs, 1000)}, ${stacks.siteOf(events.stack[row] ?? 0)}`,
    ...(kind === "snapshot" ? [] : [formatExactBytes(bytes)]),
    ...(kind === "out of memory" ? [`free on the device: ${formatExactBytes(free)}`] : []),
  ];
}
