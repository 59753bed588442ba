import { DeviceTimeline } from "../model/device_timeline.ts";
import { EventLog } from "../model/event_log.ts";
import { noMemoryEvents } from "../model/events.ts";
import { Lanes } from "../model/lanes.ts";
import { RecordedNames } from "../model/names.ts";
import { Stacks } from "../model/stacks.ts";
import { Work } from "../model/work.ts";
import type { DeviceContents } from "../view/chart_context.ts";
import type { ArrowTable } from "../wire/arrow.ts";

/** Everything of a recording that has come so far. */
export class GrowingRecording {
  readonly events: EventLog;
  readonly work = new Work();
  readonly #stacks = new Stacks();
  readonly #names = new RecordedNames();
  readonly #lanes = new Lanes(this.work, this.#names);
  readonly #devices = new Set<number>();
  #eventCount = 0;
  readonly #derived = new Map<number, DeviceContents>();
  #durationNs = 0;

  constructor(initialEvents = 0) {
    this.events = new EventLog(initialEvents);
  }

  append(table: ArrowTable): void {
    if (table.name === "memory_events") {
      this.events.append(table);
      this.#eventCount += table.rows;
      this.#addDevices(this.events.devices);
    } else {
      this.#stacks.append(table);
      this.#names.append(table);
      this.work.append(table);
      this.#addDevices(table.name === "activities" ? table.numbers("device") : []);
    }
    this.#derived.clear();
  }

  /** Lets it last until a time, or longer where something in it ends later. */
  extend(durationNs: number): void {
    if (durationNs > this.#durationNs) {
      this.#durationNs = durationNs;
      this.#derived.clear();
    }
  }

  /** The memory events of all devices. */
  get eventCount(): number {
    return this.#eventCount;
  }

  /** The devices that there is something of, ascending. */
  get devices(): number[] {
    return [...this.#devices].sort((left, right) => left - right);
  }

  /** What the charts of a device are drawn from; the same until something is added. */
  contentsOf(device: number): DeviceContents {
    const known = this.#derived.get(device);
    if (known !== undefined) {
      return known;
    }
    const endNs = Math.max(this.#durationNs, this.work.endNs);
    this.#lanes.extend(endNs);
    const events = this.events.ofDevice(device) ?? noMemoryEvents();
    const contents = {
      device,
      timeline: new DeviceTimeline(events, endNs),
      work: this.work,
      lanes: this.#lanes,
      stacks: this.#stacks,
      names: this.#names,
    };
    this.#derived.set(device, contents);
    return contents;
  }

  #addDevices(devices: Iterable<number>): void {
    for (const device of devices) {
      this.#devices.add(device);
    }
  }
}
