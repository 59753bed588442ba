import type { RecordingFile } from "../wire/recording_file.ts";

/** In the order of `ACTIONS` in gpuviz/tables.py. */
export const ACTIONS = [
  "alloc",
  "free_requested",
  "free_completed",
  "segment_alloc",
  "segment_free",
  "segment_map",
  "segment_unmap",
  "oom",
  "record_stream",
  "snapshot",
  "annotate",
] as const;

export const Action = {
  alloc: 0,
  freeRequested: 1,
  freeCompleted: 2,
  segmentAlloc: 3,
  segmentFree: 4,
  segmentMap: 5,
  segmentUnmap: 6,
  outOfMemory: 7,
} as const;

export type Floats = Float64Array<ArrayBuffer>;
export type Bytes = Uint8Array<ArrayBuffer>;
export type Indices = Int32Array<ArrayBuffer>;

/** The allocator events of one device, in the order in which they happened. */
export interface MemoryEvents {
  readonly count: number;
  /** How many leading events describe what existed when the recording began. */
  readonly initialCount: number;
  readonly timeNs: Floats;
  readonly action: Bytes;
  readonly address: Floats;
  readonly size: Floats;
  readonly requestedSize: Floats;
  readonly stream: Floats;
  readonly pool: Floats;
  readonly stack: Floats;
}

/** The events of every device that has any, by device ordinal. */
export async function readMemoryEvents(file: RecordingFile): Promise<Map<number, MemoryEvents>> {
  const table = await file.table("memory_events");
  const all: MemoryEvents = {
    count: table.rows,
    initialCount: file.initialEvents,
    timeNs: table.numbers("time"),
    action: table.codes("action", ACTIONS),
    address: table.numbers("address"),
    size: table.numbers("size"),
    requestedSize: table.numbers("requested_size"),
    stream: table.numbers("stream"),
    pool: table.numbers("pool"),
    stack: table.numbers("stack"),
  };
  return splitByDevice(all, table.numbers("device"));
}

export function noMemoryEvents(): MemoryEvents {
  const none = new Float64Array();
  return {
    count: 0,
    initialCount: 0,
    timeNs: none,
    action: new Uint8Array(),
    address: none,
    size: none,
    requestedSize: none,
    stream: none,
    pool: none,
    stack: none,
  };
}

export function splitByDevice(all: MemoryEvents, device: Floats): Map<number, MemoryEvents> {
  const counts = new Map<number, number>();
  for (const ordinal of device) {
    counts.set(ordinal, (counts.get(ordinal) ?? 0) + 1);
  }
  const parts = new Map<number, MemoryEvents>();
  for (const ordinal of [...counts.keys()].sort((left, right) => left - right)) {
    const part =
      counts.size === 1 ? all : take(all, rowsOf(device, ordinal, counts.get(ordinal) ?? 0));
    parts.set(ordinal, { ...part, timeNs: neverBackwards(part.timeNs) });
  }
  return parts;
}

function rowsOf(device: Floats, ordinal: number, count: number): Indices {
  const rows = new Int32Array(count);
  let length = 0;
  for (let row = 0; row < device.length; row += 1) {
    if (device[row] === ordinal) {
      rows[length] = row;
      length += 1;
    }
  }
  return rows;
}

function take(all: MemoryEvents, rows: Indices): MemoryEvents {
  const floats = (column: Floats): Floats => Float64Array.from(rows, (row) => column[row] ?? 0);
  return {
    count: rows.length,
    initialCount: rows.filter((row) => row < all.initialCount).length,
    timeNs: floats(all.timeNs),
    action: Uint8Array.from(rows, (row) => all.action[row] ?? 0),
    address: floats(all.address),
    size: floats(all.size),
    requestedSize: floats(all.requestedSize),
    stream: floats(all.stream),
    pool: floats(all.pool),
    stack: floats(all.stack),
  };
}

/** Threads stamp events before they enter the allocator, so a stamp may be a little early. */
function neverBackwards(timeNs: Floats): Floats {
  const ascending = new Float64Array(timeNs.length);
  let latest = timeNs[0] ?? 0;
  for (let row = 0; row < timeNs.length; row += 1) {
    latest = Math.max(latest, timeNs[row] ?? latest);
    ascending[row] = latest;
  }
  return ascending;
}
