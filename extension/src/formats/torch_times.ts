import type { PickleValue } from "../wire/pickle_value.ts";
import { entryOf } from "./snapshot_values.ts";
import type { TorchSnapshot } from "./torch_snapshot.ts";

// In nanoseconds since 1970 it is the last microsecond that 64 bits have, in the year 2262.
const LATEST_US = Math.floor(2 ** 63 / 1000);
const NS = 1000;

/** Times of a snapshot, in ns since the recording's start. */
export class TorchTimes {
  /** Of each event; on one device none is before the one before it. */
  readonly events: Float64Array<ArrayBuffer>;
  /** The last time of all. */
  readonly endNs: number;
  // The start since 1970, in two parts because a double does not have it exactly.
  readonly #startUs: number;
  readonly #restNs: number;
  /** Whether the file has no times, so that events are 1 µs apart. */
  readonly areMissing: boolean;
  /** Events that the file has before their predecessors. */
  readonly moved: number;

  constructor({ events, annotations, recorder }: TorchSnapshot) {
    const timeUs = events.timeUs.view();
    const othersUs = annotations.map((annotation) => annotation.timeUs);
    const latestUs = Math.max(latest(timeUs), latest(othersUs));
    if (latestUs > LATEST_US) {
      throw new Error(
        `It is no torch memory snapshot at device_traces: a time is ${latestUs} µs after 1970, expected at most ${LATEST_US}.`,
      );
    }
    const start = startOf(recorder);
    this.areMissing = start === undefined && events.count > 0 && latest(timeUs) === 0;
    const earliestUs = Math.min(earliest(timeUs), earliest(othersUs));
    this.#startUs = start?.us ?? (Number.isFinite(earliestUs) ? earliestUs : 0);
    this.#restNs = start?.restNs ?? 0;
    this.events = new Float64Array(events.count);
    let previous = -1;
    let ordinal = 0;
    let moved = 0;
    for (let row = 0; row < events.count; row += 1) {
      const isFirst = row === 0 || events.device.at(row) !== events.device.at(row - 1);
      ordinal = isFirst ? 0 : ordinal + 1;
      const time = this.areMissing ? ordinal * NS : this.of(timeUs[row] ?? 0);
      previous = isFirst ? time : Math.max(previous, time);
      this.events[row] = previous;
      moved += previous === time ? 0 : 1;
    }
    this.moved = moved;
    this.endNs = Math.max(latest(this.events), this.of(latest(othersUs)));
  }

  /** The start, in ms since 1970; 0 where it is not known. */
  get startUnixMs(): number {
    return this.areMissing ? 0 : Math.floor(this.#startUs / 1000);
  }

  /** A time in µs since 1970 on the recording's axis. */
  of(timeUs: number): number {
    return this.areMissing ? 0 : Math.max((timeUs - this.#startUs) * NS - this.#restNs, 0);
  }
}

/** When the recording that was written began, undefined where it is not known. */
function startOf(recorder: PickleValue): { us: number; restNs: number } | undefined {
  const start = entryOf(recorder, "start_unix_ns");
  if ((typeof start !== "number" && typeof start !== "bigint") || start < 0) {
    return undefined;
  }
  const ns = BigInt(start);
  const us = Number(ns / 1000n);
  return ns <= BigInt(LATEST_US) * 1000n ? { us, restNs: Number(ns % 1000n) } : undefined;
}

function latest(times: ArrayLike<number>): number {
  let high = 0;
  for (let row = 0; row < times.length; row += 1) {
    high = Math.max(high, times[row] ?? 0);
  }
  return high;
}

/** Without those that are not known, which are 0. */
function earliest(times: ArrayLike<number>): number {
  let low = Infinity;
  for (let row = 0; row < times.length; row += 1) {
    const time = times[row] ?? 0;
    low = time > 0 && time < low ? time : low;
  }
  return low;
}
