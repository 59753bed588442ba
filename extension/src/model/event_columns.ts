import { GrowingBytes, GrowingFloats } from "../base/growing.ts";
import type { ArrowTable } from "../wire/arrow.ts";
import { ACTIONS, type MemoryEvents } from "./events.ts";

const FLOATS = ["address", "size", "requestedSize", "stream", "pool", "stack"] as const;
const COLUMN_OF = {
  address: "address",
  size: "size",
  requestedSize: "requested_size",
  stream: "stream",
  pool: "pool",
  stack: "stack",
} as const;

/** The allocator events of one device as columns that grow. */
class DeviceColumns {
  readonly timeNs = new GrowingFloats();
  readonly action = new GrowingBytes();
  readonly floats = {
    address: new GrowingFloats(),
    size: new GrowingFloats(),
    requestedSize: new GrowingFloats(),
    stream: new GrowingFloats(),
    pool: new GrowingFloats(),
    stack: new GrowingFloats(),
  };
  initialCount = 0;

  view(): MemoryEvents {
    const { address, size, requestedSize, stream, pool, stack } = this.floats;
    return {
      count: this.timeNs.length,
      initialCount: this.initialCount,
      timeNs: this.timeNs.view(),
      action: this.action.view(),
      address: address.view(),
      size: size.view(),
      requestedSize: requestedSize.view(),
      stream: stream.view(),
      pool: pool.view(),
      stack: stack.view(),
    };
  }
}

/** The allocator events of all devices, in the order in which they come. */
export class EventColumns {
  readonly #initialEvents: number;
  readonly #devices = new Map<number, DeviceColumns>();
  #count = 0;

  /** `initialEvents` leading events describe what existed when the recording began. */
  constructor(initialEvents: number) {
    this.#initialEvents = initialEvents;
  }

  get count(): number {
    return this.#count;
  }

  get devices(): number[] {
    return [...this.#devices.keys()];
  }

  /** The events of a device so far; undefined where it has none. */
  ofDevice(device: number): MemoryEvents | undefined {
    return this.#devices.get(device)?.view();
  }

  append(table: ArrowTable): void {
    const devices = table.numbers("device");
    const times = table.numbers("time");
    const actions = table.codes("action", ACTIONS);
    const floats = FLOATS.map((name) => [name, table.numbers(COLUMN_OF[name])] as const);
    for (let row = 0; row < table.rows; row += 1) {
      const columns = this.#columnsOf(devices[row] ?? 0);
      const latest = columns.timeNs.at(columns.timeNs.length - 1);
      const time = times[row] ?? 0;
      // Threads stamp events before they enter the allocator: a stamp may be a little early.
      columns.timeNs.push(columns.timeNs.length === 0 ? time : Math.max(time, latest));
      columns.action.push(actions[row] ?? 0);
      for (const [name, values] of floats) {
        columns.floats[name].push(values[row] ?? 0);
      }
      columns.initialCount += this.#count < this.#initialEvents ? 1 : 0;
      this.#count += 1;
    }
  }

  #columnsOf(device: number): DeviceColumns {
    const known = this.#devices.get(device) ?? new DeviceColumns();
    this.#devices.set(device, known);
    return known;
  }
}
