import { CallOrders } from "./call_orders.ts";
import { SynchronizationKind, type Synchronizations } from "./synchronizations.ts";

/** The records of events, by what joins them with the waits for them. */
export class EventRecords {
  readonly #table: Synchronizations;
  readonly #bySyncId = new Map<number, number>();
  readonly #byEvent = new CallOrders();
  #taken = 0;

  constructor(table: Synchronizations) {
    this.#table = table;
  }

  /** Takes in what was added to the table. */
  extend(): void {
    const { kind, event, syncId, correlation, count } = this.#table;
    for (let row = this.#taken; row < count; row += 1) {
      if (kind[row] === SynchronizationKind.eventRecord) {
        this.#bySyncId.set(syncId[row] ?? 0, row);
        this.#byEvent.add(event[row] ?? 0, row, correlation);
      }
    }
    this.#taken = count;
  }

  /** By sync id; where CUPTI tells none, the latest record of the event that was called before. */
  recordOf(wait: number): number | undefined {
    const { event, syncId, correlation } = this.#table;
    return syncId[wait] === 0
      ? this.#byEvent.lastUpTo(event[wait] ?? 0, correlation[wait] ?? 0, correlation)
      : this.#bySyncId.get(syncId[wait] ?? 0);
  }
}
