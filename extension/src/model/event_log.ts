import { GrowingBytes, GrowingFloats, GrowingWholes } from "../base/growing.ts";
import type { Table } from "../wire/table.ts";
import { ACTIONS, type Bytes, type Floats, type MemoryEvents } from "./events.ts";

const COLUMNS = {
  address: "address",
  size: "size",
  requestedSize: "requested_size",
  stream: "stream",
  pool: "pool",
  stack: "stack",
} as const;
type ColumnName = keyof typeof COLUMNS;
const COLUMN_NAMES = Object.keys(COLUMNS) as readonly ColumnName[];

/** Rows of `memory_events` in columns. */
interface Rows extends Readonly<Record<ColumnName, Floats>> {
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
  append(table: Table): void {
    const devices = table.numbers("device");
    const rows: Rows = {
      timeNs: table.numbers("time"),
      action: table.codes("action", ACTIONS),
      address: table.numbers("address"),
      size: table.numbers("size"),
      requestedSize: table.numbers("requested_size"),
      stream: table.numbers("stream"),
      pool: table.numbers("pool"),
      stack: table.numbers("stack"),
    };
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

class DeviceEvents {
  readonly #timeNs = new GrowingFloats();
  readonly #action = new GrowingBytes();
  readonly #columns = {
    address: new GrowingFloats(),
    size: new GrowingWholes(),
    requestedSize: new GrowingWholes(),
    stream: new GrowingWholes(),
    pool: new GrowingWholes(),
    stack: new GrowingWholes(),
  };
  #initialCount = 0;
  #latestNs = -Infinity;

  /** Takes the rows in [first, last), of which the leading `initial` were there before. */
  append(rows: Rows, first: number, last: number, initial: number): void {
    for (let row = first; row < last; row += 1) {
      // Threads stamp events before they enter the allocator, so a stamp may be a little early.
      this.#latestNs = Math.max(this.#latestNs, rows.timeNs[row] ?? 0);
      this.#timeNs.push(this.#latestNs);
    }
    this.#action.append(rows.action.subarray(first, last));
    for (const name of COLUMN_NAMES) {
      this.#columns[name].append(rows[name].subarray(first, last));
    }
    this.#initialCount += initial;
  }

  reserve(rows: number): void {
    for (const column of [this.#timeNs, this.#action, ...Object.values(this.#columns)]) {
      column.reserve(rows);
    }
  }

  view(): MemoryEvents {
    const { address, size, requestedSize, stream, pool, stack } = this.#columns;
    return {
      count: this.#action.length,
      initialCount: this.#initialCount,
      timeNs: this.#timeNs.view(),
      action: this.#action.view(),
      address: address.view(),
      size: size.view(),
      requestedSize: requestedSize.view(),
      stream: stream.view(),
      pool: pool.view(),
      stack: stack.view(),
    };
  }
}
