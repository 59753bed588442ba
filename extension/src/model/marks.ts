import { MARK_KINDS } from "../wire/codes.ts";
import { rowsOf } from "../wire/table_rows.ts";
import { formatExactBytes, formatTime } from "../base/format.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import type { Stacks } from "./stacks.ts";

const NAMES = {
  out_of_memory: "out of memory",
  snapshot: "snapshot",
  memory_returned: "memory returned",
  empty_cache: "empty_cache()",
} as const satisfies Readonly<Record<(typeof MARK_KINDS)[number], string>>;

export type MarkKind = (typeof NAMES)[keyof typeof NAMES];

/** A moment that a reader looks for; `bytes` is what was asked for or given back to the device. */
export interface Mark {
  readonly kind: MarkKind;
  /** The first of its events. */
  readonly row: number;
  readonly timeNs: number;
  readonly bytes: number;
}

/** The marks of all devices, by the event among those of its device, or -1. */
export class MemoryMarks extends rowsOf({
  device: ["device", "number"],
  event: ["event", "number"],
  kind: ["kind", MARK_KINDS],
  bytes: ["bytes", "number"],
}) {
  /** Those of a device, in the order of its events. */
  ofDevice(device: number, { events }: DeviceTimeline): Mark[] {
    const marks: Mark[] = [];
    for (let mark = 0; mark < this.count; mark += 1) {
      const row = this.event[mark] ?? -1;
      if (this.device[mark] === device && row >= 0 && row < events.count) {
        const kind = NAMES[MARK_KINDS[this.kind[mark] ?? 0] ?? "snapshot"];
        const timeNs = events.timeNs[row] ?? 0;
        marks.push({ kind, row, timeNs, bytes: this.bytes[mark] ?? 0 });
      }
    }
    return marks;
  }
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
