import { codesOf } from "../base/codes.ts";
import { HOST_WAIT_KINDS, OVERHEAD_KINDS } from "../wire/codes.ts";
import { rowsOf } from "../wire/table_rows.ts";

/** CUDA calls on the host, in the order they came. */
export class ApiCalls extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  name: ["name", "whole"],
  thread: ["thread", "whole"],
  correlation: ["correlation", "whole"],
  stack: ["stack", "whole"],
}) {}

/** In the order of `DICTIONARIES` in gpuviz/data/tables.py. */
const SYNCHRONIZATION_KINDS = [
  "event_record",
  "stream_wait_event",
  "event_synchronize",
  "stream_synchronize",
  "context_synchronize",
] as const;

export const SynchronizationKind = codesOf(SYNCHRONIZATION_KINDS);

/** Event records, waits for them, and the host waiting, in the order they came. */
export class Synchronizations extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  kind: ["kind", SYNCHRONIZATION_KINDS],
  stream: ["stream", "whole"],
  correlation: ["correlation", "whole"],
}) {}

/** Each time in which the host was blocked, as `derived.py` classified it. */
export class HostWaits extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  kind: ["kind", HOST_WAIT_KINDS],
  name: ["name", "whole"],
  // Rows of `ApiCalls` and `Synchronizations`, -1 for none.
  call: ["call", "number"],
  synchronization: ["synchronization", "number"],
  stack: ["stack", "whole"],
  // -1 if unknown.
  device: ["device", "number"],
  // The parts in which it waited for earlier work and for the copy itself; NaN if unknown.
  waitingNs: ["waiting_ns", "number"],
  transferNs: ["transfer_ns", "number"],
}) {}

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
