import { GrowingBytes, GrowingFloats } from "../base/growing.ts";
import type { ArrowTable } from "../wire/arrow.ts";
import type { RecordingFile } from "../wire/recording_file.ts";
import { ACTIONS, type Floats, type MemoryEvents } from "./events.ts";

const NUMBERS = {
  timeNs: "time",
  address: "address",
  size: "size",
  requestedSize: "requested_size",
  stream: "stream",
  pool: "pool",
  stack: "stack",
} as const;
type NumberName = keyof typeof NUMBERS;
const NUMBER_NAMES = Object.keys(NUMBERS) as readonly NumberName[];

/** The allocator events of each device, in the order in which they happened there. */
export class EventLog {
  readonly #initialCount: number;
  readonly #devices = new Map<number, DeviceEvents>();
  #taken = 0;

  /** `initialCount` leading events describe what existed when the recording began. */
  constructor(initialCount: number) {
    this.#initialCount = initialCount;
  }

  /** Takes more rows of `memory_events`. */
  append(table: ArrowTable): void {
    const action = table.codes("action", ACTIONS);
    const numbers = Object.fromEntries(
      NUMBER_NAMES.map((name) => [name, table.numbers(NUMBERS[name])]),
    ) as Record<NumberName, Floats>;
    table.numbers("device").forEach((ordinal, row) => {
      const events = this.#devices.get(ordinal) ?? new DeviceEvents();
      this.#devices.set(ordinal, events);
      events.push(numbers, action[row] ?? 0, row, this.#taken + row < this.#initialCount);
    });
    this.#taken += table.rows;
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
  readonly #numbers: Readonly<Record<NumberName, GrowingFloats>> = {
    timeNs: new GrowingFloats(),
    address: new GrowingFloats(),
    size: new GrowingFloats(),
    requestedSize: new GrowingFloats(),
    stream: new GrowingFloats(),
    pool: new GrowingFloats(),
    stack: new GrowingFloats(),
  };
  readonly #action = new GrowingBytes();
  #initialCount = 0;
  #latestNs = -Infinity;

  push(
    numbers: Readonly<Record<NumberName, Floats>>,
    action: number,
    row: number,
    isInitial: boolean,
  ): void {
    // Threads stamp events before they enter the allocator, so a stamp may be a little early.
    this.#latestNs = Math.max(this.#latestNs, numbers.timeNs[row] ?? 0);
    this.#numbers.timeNs.push(this.#latestNs);
    this.#numbers.address.push(numbers.address[row] ?? 0);
    this.#numbers.size.push(numbers.size[row] ?? 0);
    this.#numbers.requestedSize.push(numbers.requestedSize[row] ?? 0);
    this.#numbers.stream.push(numbers.stream[row] ?? 0);
    this.#numbers.pool.push(numbers.pool[row] ?? 0);
    this.#numbers.stack.push(numbers.stack[row] ?? 0);
    this.#action.push(action);
    this.#initialCount += isInitial ? 1 : 0;
  }

  view(): MemoryEvents {
    const { timeNs, address, size, requestedSize, stream, pool, stack } = this.#numbers;
    return {
      count: this.#action.length,
      initialCount: this.#initialCount,
      timeNs: timeNs.view(),
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

export async function readEventLog(file: RecordingFile): Promise<EventLog> {
  const log = new EventLog(file.initialEvents);
  log.append(await file.table("memory_events"));
  return log;
}
