import { ACTIONS, Action, FRAMEWORKS } from "../wire/codes.ts";
import { columnsOf } from "../base/growing.ts";
import type { ArrowTable } from "../wire/arrow.ts";
import type { MemoryEvents } from "./events.ts";

const COPIED = [
  "action",
  "address",
  "size",
  "requestedSize",
  "stream",
  "pool",
  "stack",
  "framework",
] as const;

/** Rows of `memory_events` in columns. */
type Rows = ReturnType<typeof readRows>;

/** Rows of `host_memory_events` have no stream and no pool, those of older files no framework. */
export function readRows(table: ArrowTable) {
  const numbersOf = (column: string) =>
    table.has(column) ? table.numbers(column) : new Float64Array(table.rows);
  return {
    timeNs: table.numbers("time"),
    action: table.codes("action", ACTIONS),
    address: table.numbers("address"),
    size: table.numbers("size"),
    requestedSize: table.numbers("requested_size"),
    stream: numbersOf("stream"),
    pool: numbersOf("pool"),
    stack: table.numbers("stack"),
    framework: table.has("framework")
      ? table.codes("framework", FRAMEWORKS)
      : new Uint8Array(table.rows),
  };
}

/** The allocator events of each device, in the order in which they happened there. */
export class EventLog {
  /** How many events there are, of all devices. */
  count = 0;
  readonly #initialCount: number;
  readonly #devices = new Map<number, DeviceEvents>();
  #expected = 0;

  /** `initialCount` leading events describe what existed when the recording began. */
  constructor(initialCount: number) {
    this.#initialCount = initialCount;
  }

  /** Takes more rows of `memory_events`. */
  append(table: ArrowTable): void {
    const devices = table.numbers("device");
    const rows = readRows(table);
    // Most events follow one of the same device.
    for (let first = 0; first < table.rows;) {
      const device = devices[first] ?? 0;
      let last = first + 1;
      while (last < table.rows && devices[last] === device) {
        last += 1;
      }
      const initial = Math.min(Math.max(this.#initialCount - this.count - first, 0), last - first);
      this.#eventsOf(device).append(rows, first, last, initial);
      first = last;
    }
    this.count += table.rows;
  }

  /** Makes room for events that will come. */
  reserve(rows: number): void {
    this.#expected = rows;
  }

  #eventsOf(device: number): DeviceEvents {
    const known = this.#devices.get(device);
    if (known !== undefined) {
      return known;
    }
    const events = new DeviceEvents();
    events.reserve(this.#expected);
    this.#devices.set(device, events);
    return events;
  }

  /** The ordinals of the devices that have events. */
  get devices(): Iterable<number> {
    return this.#devices.keys();
  }

  /** The events of a device so far, without copying. */
  ofDevice(ordinal: number): MemoryEvents {
    return this.#devices.get(ordinal)?.view() ?? noMemoryEvents();
  }
}

/** The events of one allocator, in the order in which they happened. */
export class DeviceEvents extends columnsOf({
  timeNs: "number",
  action: "byte",
  address: "number",
  size: "whole",
  requestedSize: "whole",
  stream: "whole",
  pool: "whole",
  stack: "whole",
  framework: "byte",
}) {
  initialCount = 0;
  isShared = false;
  #framework: number | undefined;
  #latestNs = -Infinity;

  /** Takes the rows in [first, last), of which the leading `initial` were there before. */
  append(rows: Rows, first: number, last: number, initial: number): void {
    const timeNs = rows.timeNs.slice(first, last);
    timeNs.forEach((time, row) => {
      // Threads stamp events before they enter the allocator, so a stamp may be a little early.
      this.#latestNs = Math.max(this.#latestNs, time);
      timeNs[row] = this.#latestNs;
    });
    this.columns.timeNs.append(timeNs);
    for (const name of COPIED) {
      this.columns[name].append(rows[name].subarray(first, last));
    }
    this.initialCount += initial;
    for (let row = first; row < last && !this.isShared; row += 1) {
      if (rows.action[row] === Action.alloc) {
        this.#framework ??= rows.framework[row];
        this.isShared = this.#framework !== rows.framework[row];
      }
    }
  }

  view(): MemoryEvents {
    this.show();
    return { ...this };
  }
}

export function noMemoryEvents(): MemoryEvents {
  return new DeviceEvents().view();
}
