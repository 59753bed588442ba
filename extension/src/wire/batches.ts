import { ArrowTable } from "./arrow.ts";

/** The numbers of the recorder, which all views show, at one time. */
export interface LiveStatistics {
  readonly elapsedNs: number;
  readonly counts: string;
  readonly devices: readonly {
    readonly device: number;
    readonly allocated: number;
    readonly peak: number;
  }[];
}

/** What the kernel sends of a recording: what is new, or a part of everything until now. */
export interface Batches {
  readonly number: number;
  readonly part: number;
  /** In how many parts everything comes; 0 where only what is new comes. */
  readonly parts: number;
  readonly recording: boolean;
  /** Whether messages come while a cell runs; in some notebooks they come when it has ended. */
  readonly live: boolean;
  readonly durationNs: number;
  readonly initialEvents: number;
  readonly tables: readonly SentTable[];
  /** Where there are new ones. */
  readonly statistics?: LiveStatistics;
}

/** A table of which a message has rows; those from a time on replace what came before. */
type SentTable = string | { readonly name: string; readonly replace_from_ns?: number };

/** The message as batches, undefined where it is another one. */
export function readBatches(content: unknown): Batches | undefined {
  if (typeof content !== "object" || content === null || !("kind" in content)) {
    return undefined;
  }
  return content.kind === "batches" ? (content as unknown as Batches) : undefined;
}

/** The number of the kernel's last message, undefined where the message tells another thing. */
export function readPosition(content: unknown): number | undefined {
  if (typeof content !== "object" || content === null || !("kind" in content)) {
    return undefined;
  }
  return content.kind === "at" ? (content as unknown as { number: number }).number : undefined;
}

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
