import type { ArrowTable } from "../wire/arrow.ts";
import { countAtMost } from "../base/search.ts";
import { DeviceTimeline } from "./device_timeline.ts";
import { DeviceEvents, readRows } from "./event_log.ts";
import { LEVEL_NAMES, type LevelName } from "./levels.ts";

/** Pinned host memory, which belongs to no device. */
export class HostMemory {
  readonly timeline = new DeviceTimeline();
  readonly #events = new DeviceEvents();

  /** Takes more rows of `host_memory_events`; those until the start describe what existed then. */
  append(table: ArrowTable, startNs: number): void {
    const rows = readRows(table);
    const initial = countAtMost(rows.timeNs, startNs);
    this.#events.append(rows, 0, table.rows, initial);
  }

  /** Takes what was appended into the timeline, which lasts until a time. */
  extend(endNs: number): void {
    this.timeline.extend(this.#events.view(), endNs);
  }

  /** Makes room for events that will come. */
  reserve(events: number): void {
    this.#events.reserve(events);
    this.timeline.reserve(events);
  }

  get isRecorded(): boolean {
    return this.timeline.events.count > 0;
  }

  /** The levels at a time, in bytes. */
  levelsAt(timeNs: number): Readonly<Record<LevelName, number>> {
    const row = countAtMost(this.timeline.events.timeNs, timeNs) - 1;
    const [reserved = 0, active = 0, allocated = 0, requested = 0] = LEVEL_NAMES.map(
      (name) => this.timeline.lines[name].values[row] ?? 0,
    );
    return { reserved, active, allocated, requested };
  }
}
