import { nextTask } from "../base/next_task.ts";
import { ArrowTable, type Part, textsOf } from "./arrow.ts";
import type { Values } from "./arrow_messages.ts";
import type { ByteSource, Bytes } from "./byte_source.ts";
import { DERIVED_VERSION } from "./codes.ts";
import { RecordingFile, type Tables } from "./recording_file.ts";

const MIB = 2 ** 20;
/** Its values need two to four times as much, and the memory of a module has at most 4 GiB. */
const LARGEST_BYTES = 512 * MIB;
const PIECE_BYTES = 16 * MIB;
/** Rows that are taken in at once. */
const ROWS_OF_PART = 1 << 16;
/** Of WASI: what the module asks of an operating system, such as printing, it does not get. */
const NOT_SUPPORTED = 58;

/** What gpuviz/native/viewer/snapshot_reader.cpp exports. */
interface Reader {
  readonly memory: WebAssembly.Memory;
  _initialize(): void;
  reserve(size: number): number;
  read(): number;
  description(): number;
}

/** The type of an array, where it is in the memory of the module, and its length. */
type Place = readonly [type: keyof typeof ARRAYS, at: number, length: number];

/** A column as the module describes it: numbers, texts, lists of numbers, or codes of texts. */
interface Column {
  readonly values?: Place;
  readonly starts?: Place;
  readonly items?: Place;
  readonly words?: Column;
}

interface Table {
  readonly rows: number;
  readonly columns: Readonly<Record<string, Column>>;
}

interface Description {
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly tables: Readonly<Record<string, Table>>;
}

const ARRAYS = {
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
};
const NOTHING = new Uint8Array();

/**
 * Reads a PyTorch memory snapshot by the native reader of gpuviz, compiled to WebAssembly.
 *
 * Throws an error that names the part of the file at fault.
 */
export async function readSnapshot(module: Bytes, file: ByteSource): Promise<RecordingFile> {
  if (file.byteLength > LARGEST_BYTES) {
    const size = Math.ceil(file.byteLength / MIB);
    throw new Error(
      `the snapshot has ${size} MiB, and this page reads at most ${LARGEST_BYTES / MIB} MiB. ` +
        "`gpuviz report snapshot.pickle` has no such limit.",
    );
  }
  const reader = await started(module);
  const at = reader.reserve(file.byteLength) >>> 0;
  for (let from = 0; from < file.byteLength; from += PIECE_BYTES) {
    const to = Math.min(from + PIECE_BYTES, file.byteLength);
    new Uint8Array(reader.memory.buffer).set(await file.slice(from, to), at + from);
  }
  await nextTask();
  const size = sizeRead(reader);
  const text = new Uint8Array(reader.memory.buffer, reader.description() >>> 0, size);
  const { manifest, tables } = JSON.parse(new TextDecoder().decode(text)) as Description;
  const rows = Object.entries(tables).map(([name, table]) => [name, table.rows]);
  // All derived tables are here, as a snapshot has no rows for the others.
  const whole = { ...manifest, tables: Object.fromEntries(rows), derived_version: DERIVED_VERSION };
  return new RecordingFile(whole, new SnapshotTables(reader.memory.buffer, tables));
}

/** Reads the file that the module has; returns the size of the description. */
function sizeRead(reader: Reader): number {
  try {
    return reader.read();
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) {
      const command = "`gpuviz report snapshot.pickle` may say more.";
      throw new Error(`the reader of snapshots failed (${error.message}). ${command}`, {
        cause: error,
      });
    }
    throw error;
  }
}

/** An instance of the module, for one file. */
async function started(bytes: Bytes): Promise<Reader> {
  const module = await WebAssembly.compile(bytes);
  const imports: Record<string, Record<string, (...values: number[]) => number>> = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    (imports[from] ??= {})[name] = () => NOT_SUPPORTED;
  }
  const textAt = (at = 0, size = 0): string =>
    new TextDecoder().decode(new Uint8Array(reader.memory.buffer, at >>> 0, size));
  const fail = (place?: number, placeSize?: number, problem?: number, size?: number): never => {
    const part = textAt(place, placeSize);
    throw new Error(`${part === "" ? "" : `${part}: `}${textAt(problem, size)}.`);
  };
  imports["page"] = { fail };
  const { exports } = await WebAssembly.instantiate(module, imports);
  const reader = exports as unknown as Reader;
  reader._initialize();
  return reader;
}

/** The tables in the memory of a module that has read a snapshot. */
class SnapshotTables implements Tables {
  readonly #memory: ArrayBuffer;
  readonly #tables: Readonly<Record<string, Table>>;

  constructor(memory: ArrayBuffer, tables: Readonly<Record<string, Table>>) {
    this.#memory = memory;
    this.#tables = tables;
  }

  table(name: string): ArrowTable {
    return this.#rows(name, 0, this.#tables[name]?.rows ?? 0);
  }

  *parts(name: string): Generator<ArrowTable> {
    const rows = this.#tables[name]?.rows ?? 0;
    for (let from = 0; from < rows; from += ROWS_OF_PART) {
      yield this.#rows(name, from, Math.min(from + ROWS_OF_PART, rows));
    }
  }

  #rows(name: string, from: number, to: number): ArrowTable {
    const columns = Object.entries(this.#tables[name]?.columns ?? {});
    const parts = columns.map(
      ([column, where]) => [column, [this.#part(where, from, to)]] as const,
    );
    return new ArrowTable(name, to > from ? new Map(parts) : undefined);
  }

  #part({ starts, values, items, words }: Column, from: number, to: number): Part {
    const part = { length: to - from, nullCount: 0, validity: NOTHING };
    const numbers = values === undefined ? [] : this.#array(values);
    if (starts === undefined) {
      const known = words && textsOf(this.#part(words, 0, (words.starts?.[2] ?? 1) - 1));
      const own = (numbers as Int8Array).subarray(from, to);
      return { ...part, starts: new Int32Array(), values: own, child: undefined, words: known };
    }
    const [, at] = starts;
    const bounds = new Int32Array(this.#memory, at + 4 * from, part.length + 1);
    const child = items && this.#part({ values: items }, 0, items[2]);
    return { ...part, starts: bounds, values: numbers, child, words: undefined };
  }

  #array([type, at, length]: Place): Values {
    return new ARRAYS[type](this.#memory, at, length);
  }
}
