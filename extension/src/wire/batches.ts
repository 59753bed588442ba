import { ArrowTable } from "./arrow.ts";

/** The statistics of the recorder at one time, which all views show; memory is in bytes. */
export interface LiveStatistics {
  readonly elapsedNs: number;
  readonly counts: string;
  readonly devices: readonly {
    readonly device: number;
    readonly allocated: number;
    readonly peak: number;
  }[];
}

/** A message of the kernel with new rows, or with a part of all rows so far. */
export interface Batches {
  readonly number: number;
  readonly part: number;
  /** The number of parts of all rows; 0 if the message has only new rows. */
  readonly parts: number;
  readonly recording: boolean;
  /** Whether messages arrive while a cell runs; in some notebooks they arrive after it. */
  readonly live: boolean;
  readonly durationNs: number;
  readonly initialEvents: number;
  /** Start and end, if it is a window of a longer recording. */
  readonly window?: readonly [fromNs: number, toNs: number];
  readonly tables: readonly SentTable[];
  /** Present if they have changed. */
  readonly statistics?: LiveStatistics;
}

/** A table in a message; its rows from a time on replace earlier ones. */
type SentTable = string | { readonly name: string; readonly replace_from_ns?: number };

/** A message of the kernel: batches, the number of its last message, or what it is about. */
export type Message =
  | ({ readonly kind: "batches" } & Batches)
  | { readonly kind: "at"; readonly number: number }
  /** Another recording is shown from now on, or none yet. */
  | { readonly kind: "other" }
  | { readonly kind: "nothing" };

/** Yields each table of a message; its buffers are Arrow streams in the same order. */
export function* readTables(
  { tables }: Batches,
  buffers: readonly DataView[],
): Generator<ArrowTable> {
  for (const [index, table] of tables.entries()) {
    const { name, replace_from_ns } = typeof table === "string" ? { name: table } : table;
    const view = buffers[index];
    if (view === undefined) {
      throw new Error(`The message has no rows of its table ${name}.`);
    }
    // A copy, because columns of 64 bits must begin at a multiple of 8.
    const bytes = new Uint8Array(view.byteLength);
    bytes.set(new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength));
    yield new ArrowTable(name, bytes, replace_from_ns);
  }
}
