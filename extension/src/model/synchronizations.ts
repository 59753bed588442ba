import { rowsOf } from "../wire/table_rows.ts";

/** In the order of `DICTIONARIES` in gpuviz/recording/tables.py. */
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
export class Synchronizations extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  kind: ["kind", KINDS],
  device: ["device", "whole"],
  stream: ["stream", "whole"],
  // The event's handle, which is used again and again.
  event: ["event", "whole"],
  // What joins a record with the waits for it; 0 where CUPTI does not tell.
  syncId: ["event_sync_id", "number"],
  correlation: ["correlation", "whole"],
}) {}
