import type { ArrowTable } from "../wire/arrow.ts";
import type { DeviceContents } from "./device_contents.ts";
import { DeviceTimeline } from "./device_timeline.ts";
import { EventLog } from "./event_log.ts";
import { HostMemory } from "./host_memory.ts";
import { Lanes } from "./lanes.ts";
import { Stacks } from "./stacks.ts";
import { GpuActivities } from "./gpu_activities.ts";

/** Everything of a recording that has come so far. */
export class GrowingRecording {
  readonly gpu = new GpuActivities();
  readonly #events: EventLog;
  readonly #host = new HostMemory();
  readonly #stacks = new Stacks();
  readonly #lanes = new Lanes(this.gpu);
  readonly #contents = new Map<number, DeviceContents>();
  #expectedEvents = 0;
  #durationNs = 0;

  constructor(initialEvents = 0) {
    this.#events = new EventLog(initialEvents);
  }

  append(table: ArrowTable): void {
    if (table.name === "memory_events") {
      this.#events.append(table);
    } else if (table.name === "host_memory_events") {
      this.#host.append(table, this.gpu.bounds?.fromNs ?? 0);
    } else {
      this.#stacks.append(table);
      this.gpu.append(table);
    }
  }

  /** Lets it last until a time, or longer where something in it ends later. */
  extend(durationNs: number): void {
    this.#durationNs = Math.max(this.#durationNs, durationNs);
  }

  /** Makes room for rows that will come. */
  reserve(table: string, rows: number): void {
    if (table === "memory_events") {
      this.#events.reserve(rows);
      this.#expectedEvents = rows;
    } else if (table === "host_memory_events") {
      this.#host.reserve(rows);
    }
    this.gpu.reserve(table, rows);
  }

  /** Takes what was appended into what is drawn, so that it need not be done all at once later. */
  settle(): void {
    for (const device of this.devices) {
      this.contentsOf(device);
    }
  }

  /** The memory events of all devices. */
  get eventCount(): number {
    return this.#events.count;
  }

  /** The devices that there is something of, ascending. */
  get devices(): number[] {
    return [...new Set([...this.#events.devices, ...this.gpu.devices])].sort(
      (left, right) => left - right,
    );
  }

  /**
   * What the charts of a device are drawn from, always the same, with what has come until now; the
   * cost is that of what came since the last call.
   */
  contentsOf(device: number): DeviceContents {
    const contents = this.#contents.get(device) ?? this.#newContents(device);
    const endNs = Math.max(this.#durationNs, this.gpu.endNs);
    this.#lanes.extend();
    contents.timeline.extend(this.#events.ofDevice(device), endNs);
    this.#host.extend(endNs);
    return contents;
  }

  #newContents(device: number): DeviceContents {
    const timeline = new DeviceTimeline();
    timeline.reserve(this.#expectedEvents);
    const { gpu } = this;
    const [host, lanes, stacks] = [this.#host, this.#lanes, this.#stacks];
    const contents = { device, timeline, host, gpu, lanes, stacks, names: gpu.names };
    this.#contents.set(device, contents);
    return contents;
  }
}
