/** One table of a recording as columns that the browser computes with. */
export interface Table {
  readonly name: string;
  readonly rows: number;
  /** Rows that begin at this time or later and came before are replaced by these. */
  readonly replaceFromNs?: number | undefined;
  has(column: string): boolean;
  /** A numeric column; 64-bit integers become doubles, exact up to 2^53. */
  numbers(column: string): Float64Array<ArrayBuffer>;
  texts(column: string): readonly string[];
  /** A column of lists of numbers. */
  lists(column: string): readonly (readonly number[])[];
  /** For each row of a column of few texts the place of its text in `texts`. */
  codes(column: string, texts: readonly string[]): Uint8Array<ArrayBuffer>;
}

/** The tables of a recording, from whatever file it is. */
export interface RecordedTables {
  /** How many leading rows of `memory_events` tell what existed when the recording began. */
  readonly initialEvents: number;
  readonly durationNs: number;
  /** What is true of the recording as a whole, as `gpuviz.recording.manifest` has it. */
  readonly manifest: Readonly<Record<string, unknown>>;
  /** How many rows a table has; 0 where the recording has no such table. */
  rowsOf(name: string): number;
  /** A table, empty where the recording has none, as one of an older version may not. */
  tableIfAny(name: string): Promise<Table>;
  /** A table part by part, without ever having it in memory whole; nothing where there is none. */
  parts(name: string): AsyncIterableIterator<Table>;
}

/** The code of a text that the reader does not know, as one of a newer version may be. */
export const UNKNOWN_CODE = 255;
