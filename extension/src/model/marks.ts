import { formatExactBytes, formatTime } from "../base/format.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import { Action } from "./events.ts";
import type { Stacks } from "./stacks.ts";

export type MarkKind = "out of memory" | "snapshot" | "memory returned";

/** A moment that a reader looks for; `bytes` is what was asked for or given back to the device. */
export interface Mark {
  readonly kind: MarkKind;
  /** The first of its events. */
  readonly row: number;
  readonly timeNs: number;
  readonly bytes: number;
}

/** Allocations that failed, snapshots, and where segments were given back, as by empty_cache. */
export function findMarks({ events }: DeviceTimeline): Mark[] {
  const { action, count, size, timeNs, requestedSize } = events;
  const marks: Mark[] = [];
  let returned: { row: number; bytes: number } | undefined;
  const close = (): void => {
    if (returned !== undefined) {
      const { row, bytes } = returned;
      marks.push({ kind: "memory returned", row, bytes, timeNs: timeNs[row] ?? 0 });
      returned = undefined;
    }
  };
  for (let row = 0; row < count; row += 1) {
    const code = action[row];
    if (code === Action.segmentFree || code === Action.segmentUnmap) {
      returned ??= { row, bytes: 0 };
      returned.bytes += size[row] ?? 0;
      continue;
    }
    close();
    if (code === Action.outOfMemory) {
      const bytes = requestedSize[row] || (size[row] ?? 0);
      marks.push({ kind: "out of memory", row, bytes, timeNs: timeNs[row] ?? 0 });
    } else if (code === Action.snapshot) {
      marks.push({ kind: "snapshot", row, bytes: 0, timeNs: timeNs[row] ?? 0 });
    }
  }
  close();
  return marks;
}

export function describeMark(mark: Mark, { events }: DeviceTimeline, stacks: Stacks): string[] {
  const { kind, row, timeNs, bytes } = mark;
  const free = events.address[row] ?? 0;
  return [
    kind,
    `at ${formatTime(timeNs, 1000)}, ${stacks.siteOf(events.stack[row] ?? 0)}`,
    ...(bytes > 0 ? [formatExactBytes(bytes)] : []),
    ...(kind === "out of memory" ? [`free on the device: ${formatExactBytes(free)}`] : []),
  ];
}
