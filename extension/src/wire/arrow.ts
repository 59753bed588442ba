import {
  DICTIONARY_BATCH,
  ENCODING,
  FIELD,
  firstMessage,
  FLOATING_POINT,
  HeaderType,
  INTEGER,
  RECORD_BATCH,
  SCHEMA,
  type ArrowMessage,
} from "./arrow_message.ts";
import type { Bytes } from "./byte_source.ts";
import type { FlatTable } from "./flat_table.ts";

type Numbers = Float64Array<ArrayBuffer>;
type Values = ArrayLike<number> | BigInt64Array | BigUint64Array;

/** The code of an unknown text, for example of a newer version. */
export const UNKNOWN_CODE = 255;

type NumberArray = new (buffer: ArrayBufferLike, from: number, length: number) => Values;

/** The type of a column: of numbers, texts, lists, or keys of a dictionary. */
interface Type {
  /** The array that holds numbers or keys. */
  readonly values?: NumberArray;
  /** The type of the items of lists. */
  readonly item?: Type;
  /** The id of a dictionary, whose words are texts. */
  readonly dictionary?: number;
}

/** The part of a column in one record batch. */
interface Part {
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

/** The columns of a table received as an Arrow stream. */
export class ArrowTable {
  readonly name: string;
  /** Earlier rows that begin at this time or later are replaced by these. */
  readonly replaceFromNs: number | undefined;
  readonly rows: number;
  readonly #columns: ReadonlyMap<string, readonly Part[]> | undefined;

  /** Without a stream, an empty table that has every column. */
  constructor(name: string, stream?: Bytes, replaceFromNs?: number) {
    this.name = name;
    this.replaceFromNs = replaceFromNs;
    this.#columns = stream && columnsOf(stream);
    const [first = []] = this.#columns?.values() ?? [];
    this.rows = first.reduce((sum, { length }) => sum + length, 0);
  }

  has(column: string): boolean {
    return this.#columns?.has(column) ?? true;
  }

  /** A numeric column; 64-bit integers are exact up to 2^53, null is NaN. */
  numbers(column: string): Numbers {
    const result = new Float64Array(this.rows);
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

  /** The position in `texts` of each value of a dictionary-encoded column. */
  codes(column: string, texts: readonly string[]): Bytes {
    const codes = new Uint8Array(this.rows);
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
    const parts = this.#columns === undefined ? [] : this.#columns.get(column);
    if (parts === undefined) {
      throw new Error(`The table ${this.name} has no column ${column}.`);
    }
    return parts;
  }
}

/** The columns of a stream by name; a dictionary holds for the batches that follow it. */
function columnsOf(stream: Bytes): ReadonlyMap<string, readonly Part[]> {
  const columns: { readonly name: string; readonly type: Type; readonly parts: Part[] }[] = [];
  const words = new Map<number, readonly string[]>();
  for (const { headerType, header, body } of messagesOf(stream)) {
    if (headerType === HeaderType.schema) {
      for (const field of header?.tables(SCHEMA.fields) ?? []) {
        columns.push({ name: field.text(FIELD.name), type: typeOf(field), parts: [] });
      }
    } else if (headerType === HeaderType.dictionaryBatch) {
      const id = header?.long(DICTIONARY_BATCH.id) ?? 0;
      const parts = partsOf([{}], header?.table(DICTIONARY_BATCH.data), body, words);
      const before = header?.byte(DICTIONARY_BATCH.isDelta) === 1 ? (words.get(id) ?? []) : [];
      words.set(id, [...before, ...parts.flatMap(textsOf)]);
    } else if (headerType === HeaderType.recordBatch) {
      const types = columns.map(({ type }) => type);
      partsOf(types, header, body, words).forEach((part, at) => columns[at]?.parts.push(part));
    }
  }
  return new Map(columns.map(({ name, parts }) => [name, parts]));
}

function* messagesOf(stream: Bytes): Generator<ArrowMessage> {
  for (let from = 0; from < stream.byteLength;) {
    const message = firstMessage(stream.subarray(from));
    if (typeof message === "number") {
      throw new Error("The recording has a table that is cut off.");
    }
    if (message === undefined) {
      return;
    }
    yield message;
    from += message.length;
  }
}

const TypeKind = { integer: 2, floatingPoint: 3, text: 5, list: 12 } as const;
const SIGNED = [Int8Array, Int16Array, Int32Array, BigInt64Array];
const UNSIGNED = [Uint8Array, Uint16Array, Uint32Array, BigUint64Array];

function typeOf(field: FlatTable): Type {
  const encoding = field.table(FIELD.dictionary);
  if (encoding !== undefined) {
    const indices = encoding.table(ENCODING.indices);
    const values = indices === undefined ? Int32Array : integersOf(indices);
    return { values, dictionary: encoding.long(ENCODING.id) };
  }
  const type = field.table(FIELD.type);
  switch (field.byte(FIELD.typeKind)) {
    case TypeKind.integer:
      return type === undefined ? {} : { values: integersOf(type) };
    case TypeKind.floatingPoint:
      return { values: type?.short(FLOATING_POINT.precision) === 1 ? Float32Array : Float64Array };
    case TypeKind.list: {
      const [item] = field.tables(FIELD.children);
      return item === undefined ? {} : { item: typeOf(item) };
    }
    case TypeKind.text:
      return {};
    default:
      throw new Error(`The column ${field.text(FIELD.name)} has a type that is not supported.`);
  }
}

function integersOf(type: FlatTable): NumberArray {
  const arrays: readonly NumberArray[] = type.byte(INTEGER.isSigned) === 1 ? SIGNED : UNSIGNED;
  return arrays[Math.log2(type.int(INTEGER.bits)) - 3] ?? Int32Array;
}

/** The part of each column in a batch, whose nodes and buffers are in the order of the types. */
function partsOf(
  types: readonly Type[],
  batch: FlatTable | undefined,
  body: Bytes,
  words: ReadonlyMap<number, readonly string[]>,
): Part[] {
  const nodes = batch?.pairs(RECORD_BATCH.nodes).values();
  const buffers = batch?.pairs(RECORD_BATCH.buffers).values();
  const bytes = (): Uint8Array => {
    const [from, length] = buffers?.next().value ?? [0, 0];
    return body.subarray(from, from + length);
  };
  const partOf = ({ values: Numeric, item, dictionary }: Type): Part => {
    const [length, nullCount] = nodes?.next().value ?? [0, 0];
    const validity = bytes();
    const starts = Numeric === undefined ? arrayOf(Int32Array, bytes()) : new Int32Array();
    const child = item && partOf(item);
    const values = child === undefined ? arrayOf(Numeric ?? Uint8Array, bytes()) : [];
    const own = dictionary === undefined ? undefined : (words.get(dictionary) ?? []);
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

const decoder = new TextDecoder();

function textsOf(part: Part): string[] {
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
