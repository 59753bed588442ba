import { GrowingFloats } from "../base/growing.ts";
import { rowsOf } from "../wire/table_rows.ts";
import { LevelLine } from "./decimation.ts";
import type { DeviceTimeline } from "./device_timeline.ts";

/** The rows of `free_levels`: changes of all devices, by the event among those of its device. */
export class FreeChanges extends rowsOf({
  device: ["device", "whole"],
  event: ["event", "number"],
  largest: ["largest", "number"],
  outside: ["outside", "number"],
}) {}

/** The free bytes in segments after each event of a device, and its largest free block. */
export class FreeLevels {
  readonly free = new LevelLine();
  readonly largest = new LevelLine();
  /** The events after which both are known. */
  known = 0;
  readonly #free = new GrowingFloats();
  readonly #largest = new GrowingFloats();
  #taken = 0;
  #largestBytes = 0;
  #outsideBytes = 0;

  /** Takes in the changes that were added since the last call, of events that are there. */
  extend(changes: FreeChanges, device: number, { lines, events }: DeviceTimeline): void {
    for (; this.#taken < changes.count; this.#taken += 1) {
      const event =
        changes.device[this.#taken] === device ? (changes.event[this.#taken] ?? -1) : -1;
      if (event >= events.count) {
        break;
      }
      this.#fill(lines, event);
      if (event >= 0) {
        this.#largestBytes = changes.largest[this.#taken] ?? 0;
        this.#outsideBytes = changes.outside[this.#taken] ?? 0;
        this.#fill(lines, event + 1);
      }
    }
    this.free.extend(this.#free.view());
    this.largest.extend(this.#largest.view());
  }

  /** Adds the levels after the events before `end`, which the last change still describes. */
  #fill({ reserved, active }: DeviceTimeline["lines"], end: number): void {
    const count = Math.max(end - this.known, 0);
    const [free, largest] = [this.#free.lengthen(count), this.#largest.lengthen(count)];
    for (; this.known < end; this.known += 1) {
      const inside = (active.values[this.known] ?? 0) - this.#outsideBytes;
      free[this.known] = (reserved.values[this.known] ?? 0) - inside;
      largest[this.known] = this.#largestBytes;
    }
  }
}
