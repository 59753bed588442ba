import { release } from "../base/release.ts";
import { messagesIn, type Batch, type Field, type Type, type Values } from "./arrow_messages.ts";
import type { Bytes } from "./byte_source.ts";

type Numbers = Float64Array<ArrayBuffer>;

/** The code of an unknown text, for example of a newer version. */
export const UNKNOWN_CODE = 255;

/** The part of a column in one record batch. */
export interface Part {
  readonly length: number;
  readonly nullCount: number;
  /** A bit for each value: whether it is not null. */
  readonly validity: Uint8Array;
  /** Where each text or list begins, and where the last one ends. */
  readonly starts: Int32Array;
  /** Numbers, keys of a dictionary, or the bytes of texts. */
  readonly values: Values;
  /** The items of lists. */
  readonly child: Part | undefined;
  /** The texts of the dictionary. */
  readonly words: readonly string[] | undefined;
}

/** The columns of a table received as an Arrow stream, or in parts. */
export class ArrowTable {
  readonly name: string;
  /** Earlier rows that begin at this time or later are replaced by these. */
  readonly replaceFromNs: number | undefined;
  readonly rows: number;
  readonly #columns: ReadonlyMap<string, readonly Part[]> | undefined;
  readonly #buffers: ArrayBuffer[] = [];

  /** Without content, an empty table that has every column. */
  constructor(
    name: string,
    content?: Bytes | ReadonlyMap<string, readonly Part[]>,
    replaceFromNs?: number,
  ) {
    this.name = name;
    this.replaceFromNs = replaceFromNs;
    this.#columns = content instanceof Uint8Array ? columnsOf(content) : content;
    this.#buffers.push(...(content instanceof Uint8Array ? [content.buffer] : []));
    const [first = []] = this.#columns?.values() ?? [];
    this.rows = first.reduce((sum, { length }) => sum + length, 0);
  }

  /** Returns the memory of the stream and of the columns that were read, which are empty then. */
  release(): void {
    this.#buffers.splice(0).forEach(release);
  }

  has(column: string): boolean {
    return this.#columns?.has(column) ?? true;
  }

  /** A numeric column; 64-bit integers are exact up to 2^53, null is NaN. */
  numbers(column: string): Numbers {
    const result = new Float64Array(this.rows);
    this.#buffers.push(result.buffer);
    let start = 0;
    for (const part of this.#parts(column)) {
      copyNumbers(result, start, part);
      for (let index = 0; part.nullCount > 0 && index < part.length; index += 1) {
        result[start + index] = isThere(part, index) ? (result[start + index] ?? 0) : NaN;
      }
      start += part.length;
    }
    return result;
  }

  /** The column may be plain or dictionary-encoded; what is unknown is empty. */
  texts(column: string): readonly string[] {
    return this.#parts(column).flatMap(textsOf);
  }

  /** A column of lists of numbers. */
  lists(column: string): readonly (readonly number[])[] {
    return this.#parts(column).flatMap(({ length, starts, child }) => {
      const values = Array.from<number | bigint, number>(child?.values ?? [], Number);
      return Array.from({ length }, (_, index) => values.slice(starts[index], starts[index + 1]));
    });
  }

  /** A column of lists of texts. */
  textLists(column: string): readonly (readonly string[])[] {
    return this.#parts(column).flatMap(({ length, starts, child }) => {
      const texts = child === undefined ? [] : textsOf(child);
      return Array.from({ length }, (_, index) => texts.slice(starts[index], starts[index + 1]));
    });
  }

  /** The position in `texts` of each value of a dictionary-encoded column. */
  codes(column: string, texts: readonly string[]): Bytes {
    const codes = new Uint8Array(this.rows);
    this.#buffers.push(codes.buffer);
    let start = 0;
    for (const { length, values, words = [] } of this.#parts(column)) {
      const codeOfKey = Uint8Array.from(words, (word) => {
        const code = texts.indexOf(word);
        return code < 0 ? UNKNOWN_CODE : code;
      });
      for (let index = 0; index < length; index += 1) {
        codes[start + index] = codeOfKey[Number(values[index])] ?? UNKNOWN_CODE;
      }
      start += length;
    }
    return codes;
  }

  #parts(column: string): readonly Part[] {
    const parts = this.#columns ? this.#columns.get(column) : [];
    if (!parts) {
      throw new Error(`The table ${this.name} has no column ${column}.`);
    }
    return parts;
  }
}

/** The columns of a stream by name; a dictionary holds for the batches that follow it. */
function columnsOf(stream: Bytes): ReadonlyMap<string, readonly Part[]> {
  let fields: readonly Field[] = [];
  const columns = new Map<string, Part[]>();
  const words = new Map<number, readonly string[]>();
  for (const message of messagesIn(stream)) {
    if (message.kind === "schema") {
      fields = message.fields;
      fields.forEach(({ name }) => columns.set(name, []));
    } else if (message.kind === "dictionary") {
      const { id, isDelta, batch } = message;
      const encoded = fields.find(({ type }) => type.dictionary?.id === id)?.type.dictionary;
      const parts = encoded === undefined ? [] : partsOf([encoded.words], batch, words);
      const before = isDelta ? (words.get(id) ?? []) : [];
      words.set(id, [...before, ...parts.flatMap(textsOf)]);
    } else {
      const types = fields.map(({ type }) => type);
      partsOf(types, message.batch, words).forEach((part, at) =>
        columns.get(fields[at]?.name ?? "")?.push(part),
      );
    }
  }
  return columns;
}

/** The part of each column in a batch. */
function partsOf(
  types: readonly Type[],
  { nodes, regions }: Batch,
  words: ReadonlyMap<number, readonly string[]>,
): Part[] {
  const [node, region] = [nodes.values(), regions.values()];
  const bytes = (): Uint8Array => region.next().value ?? new Uint8Array();
  const partOf = ({ values: kind, items, dictionary }: Type): Part => {
    const { length, nullCount } = node.next().value ?? { length: 0, nullCount: 0 };
    const validity = bytes();
    const starts = kind === undefined ? arrayOf(Int32Array, bytes()) : new Int32Array();
    const child = items && partOf(items);
    const values = child === undefined ? arrayOf(kind ?? Uint8Array, bytes()) : [];
    const own = dictionary && (words.get(dictionary.id) ?? []);
    return { length, nullCount, validity, starts, values, child, words: own };
  };
  return types.map(partOf);
}

function arrayOf<T extends Values>(
  kind: new (buffer: ArrayBufferLike, from: number, length: number) => T,
  { buffer, byteOffset, byteLength }: Uint8Array,
): T {
  const { BYTES_PER_ELEMENT: size } = kind as unknown as { readonly BYTES_PER_ELEMENT: number };
  return new kind(buffer, byteOffset, byteLength / size);
}

function isThere({ nullCount, validity }: Part, index: number): boolean {
  return nullCount === 0 || ((validity[index >> 3] ?? 0) & (1 << (index & 7))) !== 0;
}

// A text may begin with U+FEFF, which is no mark of its encoding.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export function textsOf(part: Part): string[] {
  const { length, words, starts, values } = part;
  return Array.from({ length }, (_, index) => {
    if (!isThere(part, index)) {
      return "";
    }
    return words === undefined
      ? decoder.decode((values as Bytes).subarray(starts[index], starts[index + 1]))
      : (words[Number(values[index])] ?? "");
  });
}

function copyNumbers(result: Numbers, start: number, { values, length }: Part): void {
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    // Two 32-bit halves instead of a BigInt: no allocation, and four times as fast.
    const low = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
    const high = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
    for (let index = 0; index < length; index += 1) {
      result[start + index] = (high[2 * index + 1] ?? 0) * 2 ** 32 + (low[2 * index] ?? 0);
    }
    return;
  }
  for (let index = 0; index < length; index += 1) {
    result[start + index] = Number(values[index] ?? 0);
  }
}
