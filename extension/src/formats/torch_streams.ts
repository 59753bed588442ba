import { ColumnTable } from "../wire/column_table.ts";
import type { EventColumns } from "./torch_event_table.ts";

// As in gpuviz/recording/stream_handle.py: CU_STREAM_PER_THREAD has as many streams as there are threads.
const PER_THREAD = 2;
const TAGS = 8;
const HANDLES_OF_A_THREAD = 256;

/** Streams by device and handle, ids beginning at 1. */
export class TorchStreams {
  /** Of each event. */
  readonly ids: Float64Array<ArrayBuffer>;
  readonly table: ColumnTable;

  constructor({ device, stream }: EventColumns) {
    const handles = new Map<number, Map<number, number>>();
    device.forEach((ordinal, row) => {
      const known = handles.get(ordinal) ?? new Map<number, number>();
      handles.set(ordinal, known);
      known.set(stream[row] ?? 0, 0);
    });
    const rows: { device: number; handle: number }[] = [];
    for (const ordinal of ascending(handles.keys())) {
      const known = handles.get(ordinal) ?? new Map<number, number>();
      for (const handle of ascending(known.keys())) {
        known.set(handle, rows.push({ device: ordinal, handle }));
      }
    }
    this.ids = device.map((ordinal, row) => handles.get(ordinal)?.get(stream[row] ?? 0) ?? 0);
    this.table = new ColumnTable("streams", {
      id: Float64Array.from(rows, (_, place) => place + 1),
      device: Float64Array.from(rows, (row) => row.device),
      handle: Float64Array.from(rows, (row) => row.handle),
      name: rows.map(({ handle }) => streamName(handle)),
    });
  }
}

function ascending(numbers: Iterable<number>): number[] {
  return [...numbers].sort((left, right) => left - right);
}

function streamName(handle: number): string {
  if (handle <= 1) {
    return "default stream";
  }
  if (handle % TAGS === PER_THREAD) {
    const thread = Math.floor(handle / HANDLES_OF_A_THREAD);
    return `per-thread default stream of thread ${thread}`;
  }
  return `stream 0x${handle.toString(16)}`;
}
