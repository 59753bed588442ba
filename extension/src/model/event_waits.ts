import { GrowingFloats, GrowingIds } from "../base/growing.ts";
import { CallOrders } from "./call_orders.ts";
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
  const { activities, synchronizations } = work;
  const { kind, stream, count } = synchronizations;
  const recordedStream = new GrowingIds();
  const recordedNs = new GrowingFloats();
  const waitingStream = new GrowingIds();
  const resumedNs = new GrowingFloats();
  const recordOf = recordFinder(work);
  const needed = new Set(stream);
  const orders = new CallOrders(activities.stream, activities.correlation, (row) =>
    needed.has(activities.stream[row] ?? 0),
  );
  for (let row = 0; row < count; row += 1) {
    const isWait = kind[row] === SynchronizationKind.streamWaitEvent;
    const record = isWait ? recordOf(row) : undefined;
    if (record !== undefined && stream[record] !== stream[row]) {
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

/** By sync id; where CUPTI tells none, the latest record of the event that was called before. */
function recordFinder({ synchronizations }: Work): (wait: number) => number | undefined {
  const { kind, event, syncId, correlation, count } = synchronizations;
  const isRecord = (row: number): boolean => kind[row] === SynchronizationKind.eventRecord;
  const bySyncId = new Map<number, number>();
  for (let row = 0; row < count; row += 1) {
    if (isRecord(row)) {
      bySyncId.set(syncId[row] ?? 0, row);
    }
  }
  const byEvent = new CallOrders(event, correlation, isRecord);
  return (wait) =>
    syncId[wait] === 0
      ? byEvent.lastUpTo(event[wait] ?? 0, correlation[wait] ?? 0)
      : bySyncId.get(syncId[wait] ?? 0);
}

/** CUPTI may not tell when the GPU came by; then it is when the work before the record ended. */
function recordTime(
  { synchronizations, activities }: Work,
  orders: CallOrders,
  row: number,
): number {
  const { fromNs, stream, correlation } = synchronizations;
  const known = fromNs[row] ?? 0;
  const before = orders.lastUpTo(stream[row] ?? 0, correlation[row] ?? 0);
  return known > 0 || before === undefined ? known : (activities.toNs[before] ?? known);
}

function resumeTime(
  { synchronizations, activities }: Work,
  orders: CallOrders,
  row: number,
  recordedNs: number,
): number {
  const { fromNs, stream, correlation } = synchronizations;
  const next = orders.firstAfter(stream[row] ?? 0, correlation[row] ?? 0);
  const asked = Math.max(fromNs[row] ?? 0, recordedNs);
  return next === undefined ? asked : (activities.fromNs[next] ?? asked);
}
