import { GrowingFloats, GrowingIndices, GrowingWholes, type Wholes } from "../base/growing.ts";
import { CallOrders } from "./call_orders.ts";
import { EventRecords } from "./event_records.ts";
import { SynchronizationKind } from "./synchronizations.ts";
import type { Work } from "./work.ts";

/** Where one stream's work waited for another's, by an event, as columns. */
export class EventWaits {
  count = 0;
  recordedStream: Wholes = new Uint8Array();
  /** When the GPU came by the event's record. */
  recordedNs = new Float64Array();
  waitingStream: Wholes = new Uint8Array();
  /** When the first work began that was given to the waiting stream after the wait. */
  resumedNs = new Float64Array();
  readonly #work: Work;
  readonly #records: EventRecords;
  /** The activities of streams that record or wait. */
  readonly #orders = new CallOrders();
  readonly #streams = new Set<number>();
  readonly #columns = {
    /** Rows of `Synchronizations`. */
    wait: new GrowingIndices(16),
    record: new GrowingIndices(16),
    recordedStream: new GrowingWholes(16),
    recordedNs: new GrowingFloats(16),
    waitingStream: new GrowingWholes(16),
    resumedNs: new GrowingFloats(16),
    /** The correlation id of the work that was resumed, Infinity where it has not come. */
    resumed: new GrowingFloats(16),
  };
  /** Waits whose record has not come. */
  #early: number[] = [];
  #taken = { synchronizations: 0, activities: 0 };

  constructor(work: Work) {
    this.#work = work;
    this.#records = new EventRecords(work.synchronizations);
    this.extend();
  }

  /** Joins each wait with the record that it is for, in what was added to the tables. */
  extend(): void {
    const { synchronizations, activities } = this.#work;
    this.#records.extend();
    const earliest = this.#takeActivities(this.#newStreams());
    this.#join();
    this.#taken = { synchronizations: synchronizations.count, activities: activities.count };
    const { wait, record, resumed } = this.#columns;
    for (let place = 0; place < wait.length; place += 1) {
      const recorded = synchronizations.correlation[record.at(place)] ?? 0;
      if (resumed.at(place) > earliest || recorded >= earliest) {
        this.#reckon(place);
      }
    }
    this.count = wait.length;
    this.recordedStream = this.#columns.recordedStream.view();
    this.recordedNs = this.#columns.recordedNs.view();
    this.waitingStream = this.#columns.waitingStream.view();
    this.resumedNs = this.#columns.resumedNs.view();
  }

  /** Streams that record or wait for the first time. */
  #newStreams(): Set<number> {
    const { kind, stream, count } = this.#work.synchronizations;
    const added = new Set<number>();
    for (let row = this.#taken.synchronizations; row < count; row += 1) {
      const isOfStreams = (kind[row] ?? 0) <= SynchronizationKind.streamWaitEvent;
      if (isOfStreams && !this.#streams.has(stream[row] ?? 0)) {
        added.add(stream[row] ?? 0);
        this.#streams.add(stream[row] ?? 0);
      }
    }
    return added;
  }

  /** Takes what was added, and all of streams that were added; returns its least correlation id. */
  #takeActivities(added: ReadonlySet<number>): number {
    const { stream, correlation, count } = this.#work.activities;
    let earliest = Infinity;
    for (let row = added.size > 0 ? 0 : this.#taken.activities; row < count; row += 1) {
      const of = row < this.#taken.activities ? added : this.#streams;
      if (of.has(stream[row] ?? 0)) {
        this.#orders.add(stream[row] ?? 0, row, correlation);
        earliest = Math.min(earliest, correlation[row] ?? 0);
      }
    }
    return earliest;
  }

  #join(): void {
    const { kind, count } = this.#work.synchronizations;
    const waits = this.#early;
    this.#early = [];
    for (let row = this.#taken.synchronizations; row < count; row += 1) {
      if (kind[row] === SynchronizationKind.streamWaitEvent) {
        waits.push(row);
      }
    }
    for (const row of waits) {
      this.#joinWait(row, this.#records.recordOf(row));
    }
  }

  #joinWait(row: number, record: number | undefined): void {
    const { stream } = this.#work.synchronizations;
    if (record === undefined) {
      this.#early.push(row);
    } else if (stream[record] !== stream[row]) {
      this.#columns.wait.push(row);
      this.#columns.record.push(record);
      this.#columns.recordedStream.push(stream[record] ?? 0);
      this.#columns.waitingStream.push(stream[row] ?? 0);
      this.#columns.recordedNs.push(0);
      this.#columns.resumedNs.push(0);
      this.#columns.resumed.push(Infinity);
      this.#reckon(this.#columns.wait.length - 1);
    }
  }

  #reckon(place: number): void {
    const { synchronizations, activities } = this.#work;
    const { fromNs, stream, correlation } = synchronizations;
    const { wait, recordedNs, resumedNs, resumed } = this.#columns;
    const row = wait.at(place);
    const recorded = this.#recordTime(this.#columns.record.at(place));
    const called = correlation[row] ?? 0;
    const next = this.#orders.firstAfter(stream[row] ?? 0, called, activities.correlation);
    const asked = Math.max(fromNs[row] ?? 0, recorded);
    recordedNs.set(place, recorded);
    resumedNs.set(place, next === undefined ? asked : (activities.fromNs[next] ?? asked));
    resumed.set(place, next === undefined ? Infinity : (activities.correlation[next] ?? Infinity));
  }

  /** CUPTI may not tell when the GPU came by; then it is when the work before the record ended. */
  #recordTime(row: number): number {
    const { synchronizations, activities } = this.#work;
    const { fromNs, stream, correlation } = synchronizations;
    const known = fromNs[row] ?? 0;
    const called = correlation[row] ?? 0;
    const before = this.#orders.lastUpTo(stream[row] ?? 0, called, activities.correlation);
    return known > 0 || before === undefined ? known : (activities.toNs[before] ?? known);
  }
}
