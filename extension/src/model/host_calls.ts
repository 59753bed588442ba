import type { ArrowTable } from "../wire/arrow.ts";
import { HOST_WAIT_KINDS, HostWaitKind, OVERHEAD_KINDS } from "../wire/codes.ts";
import { rowsOf } from "../wire/table_rows.ts";

/** The rows of calls that launched nothing: earlier ones have the same correlation ids. */
class RepeatedCalls {
  readonly #rows = new Set<number>();

  append(table: ArrowTable): void {
    table.numbers("call").forEach((row) => this.#rows.add(row));
  }

  /** The correlation ids of rows from `first` on, 0 for those that launched nothing. */
  without(correlations: ArrayLike<number>, first: number): ArrayLike<number> {
    return this.#rows.size === 0
      ? correlations
      : Float64Array.from(correlations, (id, at) => (this.#rows.has(first + at) ? 0 : id));
  }
}

/** CUDA calls on the host, in the order they came. */
export class ApiCalls extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  name: ["name", "whole"],
  thread: ["thread", "whole"],
  correlation: ["correlation", "whole"],
  stack: ["stack", "whole"],
}) {
  readonly repeated = new RepeatedCalls();

  protected override read(table: ArrowTable): Readonly<Record<string, ArrayLike<number>>> {
    const values = super.read(table);
    return {
      ...values,
      correlation: this.repeated.without(values["correlation"] ?? [], this.length),
    };
  }

  /** The row of the call of a correlation id; -1 if it is unknown. */
  of(correlation: number | undefined): number {
    return this.byCorrelation.last(correlation ?? 0) ?? -1;
  }

  /** The call stack of the call of a correlation id; 0 if it is unknown. */
  stackOf(correlation: number | undefined): number {
    return this.stack[this.of(correlation)] ?? 0;
  }
}

const WAITED_FOR: Readonly<Record<(typeof HOST_WAIT_KINDS)[number], string>> = {
  event_synchronize: "an event",
  stream_synchronize: "a stream",
  context_synchronize: "the device",
  memcpy: "a copy",
  pageable_memcpy: "a copy of pageable memory",
};

/** Each time in which the host was blocked, as `derived.py` classified it. */
export class HostWaits extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  kind: ["kind", HOST_WAIT_KINDS],
  name: ["name", "whole"],
  // A row of `ApiCalls`; -1 for none.
  call: ["call", "number"],
  // 0 if unknown.
  thread: ["thread", "whole"],
  stack: ["stack", "whole"],
  // -1 if unknown.
  device: ["device", "number"],
  stream: ["stream", "whole"],
  // The parts in which it waited for earlier work and for the copy itself; NaN if unknown.
  waitingNs: ["waiting_ns", "number"],
  transferNs: ["transfer_ns", "number"],
}) {
  /** What the host waited for, in words. */
  waitedFor(row: number): string {
    return WAITED_FOR[HOST_WAIT_KINDS[this.kind[row] ?? 0] ?? "context_synchronize"];
  }

  /** Whether the host waited for a copy: all of a call. */
  isOfCopy(row: number): boolean {
    return (this.kind[row] ?? 0) >= HostWaitKind.memcpy;
  }
}

/** Where a stream's work waited for another stream's event. */
export class StreamWaits extends rowsOf({
  recordedNs: ["recorded_time", "number"],
  resumedNs: ["resumed_time", "number"],
  recordedStream: ["recorded_stream", "whole"],
  waitingStream: ["waiting_stream", "whole"],
}) {}

/** The copies from one device to another; the stream at an end is 0 if it is unknown. */
export class PeerCopies extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  sourceDevice: ["source_device", "whole"],
  sourceStream: ["source_stream", "whole"],
  destinationDevice: ["destination_device", "whole"],
  destinationStream: ["destination_stream", "whole"],
}) {}

/** Time that CUPTI, lazy loading or compilation took, in the order it came. */
export class Overheads extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  kind: ["kind", OVERHEAD_KINDS],
  // The thread that it was spent on, 0 if unknown.
  thread: ["thread", "whole"],
}) {
  /** In CUPTI's words, such as `lazy function loading`. */
  nameOf(row: number): string {
    return (OVERHEAD_KINDS[this.kind[row] ?? 0] ?? "").replaceAll("_", " ");
  }
}
