import { columnsOf } from "../base/growing.ts";
import type { ArrowTable } from "../wire/arrow.ts";
import { ACTIONS, type Bytes, type Floats, type MemoryEvents } from "./events.ts";

/** By the name of a column here its name in `memory_events`. */
const COLUMNS = {
  address: "address",
  size: "size",
  requestedSize: "requested_size",
  stream: "stream",
  pool: "pool",
  stack: "stack",
} as const;
const COLUMN_NAMES = Object.keys(COLUMNS) as readonly (keyof typeof COLUMNS)[];

/** Rows of `memory_events` in columns. */
interface Rows extends Readonly<Record<keyof typeof COLUMNS, Floats>> {
  readonly timeNs: Floats;
  readonly action: Bytes;
}

/** The allocator events of each device, in the order in which they happened there. */
export class EventLog {
  readonly #initialCount: number;
  readonly #devices = new Map<number, DeviceEvents>();
  #taken = 0;
  #expected = 0;

  /** `initialCount` leading events describe what existed when the recording began. */
  constructor(initialCount: number) {
    this.#initialCount = initialCount;
  }

  /** Takes more rows of `memory_events`. */
  append(table: ArrowTable): void {
    const devices = table.numbers("device");
    const numbers = Object.entries(COLUMNS).map(([name, column]) => [name, table.numbers(column)]);
    const [timeNs, action] = [table.numbers("time"), table.codes("action", ACTIONS)];
    const rows = { ...Object.fromEntries(numbers), timeNs, action } as Rows;
    // Most events follow one of the same device.
    for (let first = 0; first < table.rows;) {
      const device = devices[first] ?? 0;
      let last = first + 1;
      while (last < table.rows && devices[last] === device) {
        last += 1;
      }
      const initial = Math.min(Math.max(this.#initialCount - this.#taken - first, 0), last - first);
      this.#eventsOf(device).append(rows, first, last, initial);
      first = last;
    }
    this.#taken += table.rows;
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

  /** The ordinals of the devices that have events, ascending. */
  get devices(): number[] {
    return [...this.#devices.keys()].sort((left, right) => left - right);
  }

  /** The events of a device so far, without copying; undefined where there are none. */
  ofDevice(ordinal: number): MemoryEvents | undefined {
    return this.#devices.get(ordinal)?.view();
  }
}

class DeviceEvents extends columnsOf({
  timeNs: "number",
  action: "byte",
  address: "number",
  size: "whole",
  requestedSize: "whole",
  stream: "whole",
  pool: "whole",
  stack: "whole",
}) {
  #initialCount = 0;
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
    for (const name of [...COLUMN_NAMES, "action"] as const) {
      this.columns[name].append(rows[name].subarray(first, last));
    }
    this.#initialCount += initial;
  }

  view(): MemoryEvents {
    this.show();
    const { count, timeNs, action, address, size, requestedSize, stream, pool, stack } = this;
    const initialCount = this.#initialCount;
    const shown = { count, initialCount, timeNs, action, address, size };
    return { ...shown, requestedSize, stream, pool, stack };
  }
}
