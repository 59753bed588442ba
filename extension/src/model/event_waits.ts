import { GrowingFloats, GrowingIds } from "../base/growing.ts";
import { countAtMost } from "../base/search.ts";
import { SynchronizationKind } from "./synchronizations.ts";
import type { Work } from "./work.ts";

/** Where one stream's work waited for another's, by an event, as columns. */
export interface EventWaits {
  readonly count: number;
  readonly recordedStream: Uint32Array<ArrayBuffer>;
  /** When the GPU came by the event's record. */
  readonly recordedNs: Float64Array<ArrayBuffer>;
  readonly waitingStream: Uint32Array<ArrayBuffer>;
  /** When the first work began that was given to the waiting stream after the wait. */
  readonly resumedNs: Float64Array<ArrayBuffer>;
}

/** Joins each wait with the record that it is for. */
export function findEventWaits(work: Work): EventWaits {
  const { kind, stream, syncId, count } = work.synchronizations;
  const recordOf = new Map<number, number>();
  const recordedStream = new GrowingIds();
  const recordedNs = new GrowingFloats();
  const waitingStream = new GrowingIds();
  const resumedNs = new GrowingFloats();
  const orders = new StreamOrders(work);
  for (let row = 0; row < count; row += 1) {
    if (kind[row] === SynchronizationKind.eventRecord) {
      recordOf.set(syncId[row] ?? 0, row);
    }
  }
  for (let row = 0; row < count; row += 1) {
    const record = recordOf.get(syncId[row] ?? 0);
    const isWait = kind[row] === SynchronizationKind.streamWaitEvent && record !== undefined;
    if (isWait && syncId[row] !== 0 && stream[record] !== stream[row]) {
      const fromNs = recordTime(work, orders, record);
      recordedStream.push(stream[record] ?? 0);
      recordedNs.push(fromNs);
      waitingStream.push(stream[row] ?? 0);
      resumedNs.push(resumeTime(work, orders, row, fromNs));
    }
  }
  return {
    count: recordedNs.length,
    recordedStream: recordedStream.view(),
    recordedNs: recordedNs.view(),
    waitingStream: waitingStream.view(),
    resumedNs: resumedNs.view(),
  };
}

/** CUPTI may not tell when the GPU came by; then it is when the work before the record ended. */
function recordTime(
  { synchronizations, activities }: Work,
  orders: StreamOrders,
  row: number,
): number {
  const { fromNs, stream, correlation } = synchronizations;
  const known = fromNs[row] ?? 0;
  const before = orders.lastUpTo(stream[row] ?? 0, correlation[row] ?? 0);
  return known > 0 || before === undefined ? known : (activities.toNs[before] ?? known);
}

function resumeTime(
  { synchronizations, activities }: Work,
  orders: StreamOrders,
  row: number,
  recordedNs: number,
): number {
  const { fromNs, stream, correlation } = synchronizations;
  const next = orders.firstAfter(stream[row] ?? 0, correlation[row] ?? 0);
  const asked = Math.max(fromNs[row] ?? 0, recordedNs);
  return next === undefined ? asked : (activities.fromNs[next] ?? asked);
}

/** The activities of each stream in the order of the calls that launched them. */
class StreamOrders {
  readonly #rows = new Map<number, number[]>();
  readonly #correlations = new Map<number, number[]>();

  constructor({ activities, synchronizations }: Work) {
    const { stream, correlation, count } = activities;
    const needed = new Set(synchronizations.stream);
    for (let row = 0; row < count; row += 1) {
      const of = stream[row] ?? 0;
      if (needed.has(of) && correlation[row] !== 0) {
        const rows = this.#rows.get(of) ?? [];
        this.#rows.set(of, rows);
        rows.push(row);
      }
    }
    for (const [of, rows] of this.#rows) {
      rows.sort((left, right) => (correlation[left] ?? 0) - (correlation[right] ?? 0));
      this.#correlations.set(
        of,
        rows.map((row) => correlation[row] ?? 0),
      );
    }
  }

  lastUpTo(stream: number, correlation: number): number | undefined {
    return this.#rows.get(stream)?.[this.#place(stream, correlation) - 1];
  }

  firstAfter(stream: number, correlation: number): number | undefined {
    return this.#rows.get(stream)?.[this.#place(stream, correlation)];
  }

  #place(stream: number, correlation: number): number {
    return countAtMost(this.#correlations.get(stream) ?? [], correlation);
  }
}
