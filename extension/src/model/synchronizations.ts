import { GrowingBytes, GrowingFloats, GrowingIds } from "../base/growing.ts";
import type { ArrowTable } from "../wire/arrow.ts";

/** In the order of `DICTIONARIES` in gpuviz/tables.py. */
const KINDS = [
  "event_record",
  "stream_wait_event",
  "event_synchronize",
  "stream_synchronize",
  "context_synchronize",
] as const;

export const SynchronizationKind = {
  eventRecord: 0,
  streamWaitEvent: 1,
  eventSynchronize: 2,
  streamSynchronize: 3,
  contextSynchronize: 4,
} as const;

/** Event records, waits for them, and the host waiting, in the order they came. */
export class Synchronizations {
  readonly #fromNs = new GrowingFloats();
  readonly #toNs = new GrowingFloats();
  readonly #kind = new GrowingBytes();
  readonly #device = new GrowingIds();
  readonly #stream = new GrowingIds();
  readonly #event = new GrowingIds();
  readonly #syncId = new GrowingFloats();
  readonly #correlation = new GrowingIds();

  append(table: ArrowTable): void {
    this.#fromNs.append(table.numbers("time"));
    this.#toNs.append(table.numbers("end"));
    this.#kind.append(table.codes("kind", KINDS));
    this.#device.append(table.numbers("device"));
    this.#stream.append(table.numbers("stream"));
    this.#event.append(table.numbers("event"));
    this.#syncId.append(table.numbers("event_sync_id"));
    this.#correlation.append(table.numbers("correlation"));
  }

  get count(): number {
    return this.#fromNs.length;
  }

  get fromNs(): Float64Array<ArrayBuffer> {
    return this.#fromNs.view();
  }

  get toNs(): Float64Array<ArrayBuffer> {
    return this.#toNs.view();
  }

  get kind(): Uint8Array<ArrayBuffer> {
    return this.#kind.view();
  }

  get device(): Uint32Array<ArrayBuffer> {
    return this.#device.view();
  }

  get stream(): Uint32Array<ArrayBuffer> {
    return this.#stream.view();
  }

  /** The event's handle, which is used again and again. */
  get event(): Uint32Array<ArrayBuffer> {
    return this.#event.view();
  }

  /** What joins a record with the waits for it; 0 where CUPTI does not tell. */
  get syncId(): Float64Array<ArrayBuffer> {
    return this.#syncId.view();
  }

  get correlation(): Uint32Array<ArrayBuffer> {
    return this.#correlation.view();
  }
}
