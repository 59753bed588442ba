import { tableFromIPC, type Column, type Table as FlechetteTable } from "@uwdata/flechette";

type Numbers = Float64Array<ArrayBuffer>;

/** The code of an unknown text, for example of a newer version. */
export const UNKNOWN_CODE = 255;

/** The columns of a table received as an Arrow stream. */
export class ArrowTable {
  readonly name: string;
  /** Earlier rows that begin at this time or later are replaced by these. */
  readonly replaceFromNs: number | undefined;
  readonly #table: FlechetteTable | undefined;

  /** Without a stream, an empty table that has every column. */
  constructor(name: string, stream?: Uint8Array<ArrayBuffer>, replaceFromNs?: number) {
    this.name = name;
    this.replaceFromNs = replaceFromNs;
    this.#table = stream === undefined ? undefined : tableFromIPC(stream, { useBigInt: true });
  }

  get rows(): number {
    return this.#table?.numRows ?? 0;
  }

  has(column: string): boolean {
    return this.#table === undefined || (this.#table.getChild(column) ?? null) !== null;
  }

  /** A numeric column; 64-bit integers are exact up to 2^53, null is NaN. */
  numbers(column: string): Numbers {
    const result = new Float64Array(this.rows);
    let start = 0;
    for (const batch of this.#batches(column)) {
      copyNumbers(result, start, batch.values, batch.length);
      for (let index = 0; batch.nullCount > 0 && index < batch.length; index += 1) {
        result[start + index] = batch.isValid(index) ? (result[start + index] ?? 0) : NaN;
      }
      start += batch.length;
    }
    return result;
  }

  /** The column may be plain or dictionary-encoded. */
  texts(column: string): readonly string[] {
    return Array.from(this.#values(column), (value) => String(value ?? ""));
  }

  /** A column of lists of numbers. */
  lists(column: string): readonly (readonly number[])[] {
    return Array.from(this.#values(column), (value) =>
      value === null ? [] : Array.from(value as Iterable<number>, Number),
    );
  }

  /** The position in `texts` of each value of a dictionary-encoded column. */
  codes(column: string, texts: readonly string[]): Uint8Array<ArrayBuffer> {
    const codes = new Uint8Array(this.rows);
    let start = 0;
    for (const batch of this.#batches(column)) {
      codes.set(codesOfBatch(batch, texts), start);
      start += batch.length;
    }
    return codes;
  }

  #batches(column: string): Column<unknown>["data"] {
    return this.#column(column)?.data ?? [];
  }

  #values(column: string): Iterable<unknown> {
    return this.#column(column) ?? [];
  }

  #column(name: string): Column<unknown> | undefined {
    if (this.#table === undefined) {
      return undefined;
    }
    const column: Column<unknown> | null = this.#table.getChild(name);
    if (column === null || column === undefined) {
      throw new Error(`The table ${this.name} has no column ${name}.`);
    }
    return column;
  }
}

/** The properties of flechette's dictionary batch used here. */
interface DictionaryKeys {
  readonly length: number;
  readonly values: ArrayLike<number>;
  readonly cache: readonly unknown[];
}

function codesOfBatch(batch: unknown, texts: readonly string[]): Uint8Array<ArrayBuffer> {
  const { length, values, cache } = batch as DictionaryKeys;
  const codeOfKey = Uint8Array.from(cache, (text) => {
    const code = texts.indexOf(String(text));
    return code < 0 ? UNKNOWN_CODE : code;
  });
  const codes = new Uint8Array(length);
  for (let index = 0; index < length; index += 1) {
    codes[index] = codeOfKey[values[index] ?? 0] ?? UNKNOWN_CODE;
  }
  return codes;
}

function copyNumbers(result: Numbers, start: number, values: unknown, length: number): void {
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    // Two 32-bit halves instead of a BigInt: no allocation, and four times as fast.
    const low = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
    const high = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
    for (let index = 0; index < length; index += 1) {
      result[start + index] = (high[2 * index + 1] ?? 0) * 2 ** 32 + (low[2 * index] ?? 0);
    }
    return;
  }
  const numbers = values as ArrayLike<number>;
  for (let index = 0; index < length; index += 1) {
    result[start + index] = numbers[index] ?? 0;
  }
}
