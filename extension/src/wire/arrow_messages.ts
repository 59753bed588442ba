import {
  readBoolean,
  readInt16,
  readInt32,
  readInt64,
  readObject,
  readOffset,
  readString,
  readUint8,
  readVector,
} from "@uwdata/flechette/src/util/read.js";

import type { Bytes } from "./byte_source.ts";

export type Values = ArrayLike<number> | BigInt64Array | BigUint64Array;
type ArrayKind = new (buffer: ArrayBufferLike, from: number, length: number) => Values;

/** The type of a column: of numbers, texts, lists, or keys of a dictionary. */
export interface Type {
  /** The array that holds numbers or keys; undefined for texts and lists. */
  readonly values: ArrayKind | undefined;
  /** The type of a list's items. */
  readonly items: Type | undefined;
  readonly dictionary: { readonly id: number; readonly words: Type } | undefined;
}

export interface Field {
  readonly name: string;
  readonly type: Type;
}

/** Columns in one batch; nodes and regions are in the order of the types. */
export interface Batch {
  readonly nodes: readonly { readonly length: number; readonly nullCount: number }[];
  readonly regions: readonly Uint8Array[];
}

export type Message =
  | { readonly kind: "schema"; readonly fields: readonly Field[] }
  | {
      readonly kind: "dictionary";
      readonly id: number;
      readonly isDelta: boolean;
      readonly batch: Batch;
    }
  | { readonly kind: "batch"; readonly batch: Batch };

// Arrow's Message.fbs and Schema.fbs: fields by their positions in a table's vtable.
const SCHEMA = 1;
const DICTIONARY = 2;
const PREFIX_BYTES = 8;
const INTEGER = 2;
const FLOAT = 3;
const DOUBLE_PRECISION = 2;
const SIGNED: Readonly<Record<number, ArrayKind>> = {
  8: Int8Array,
  16: Int16Array,
  32: Int32Array,
  64: BigInt64Array,
};
const UNSIGNED: Readonly<Record<number, ArrayKind>> = {
  8: Uint8Array,
  16: Uint16Array,
  32: Uint32Array,
  64: BigUint64Array,
};

/** The messages of a stream with types that recordings have; throws if the stream is cut. */
export function* messagesIn(stream: Bytes): Generator<Message> {
  let from = 0;
  while (from + PREFIX_BYTES <= stream.length) {
    const headBytes = readInt32(stream, from + 4);
    const bodyFrom = from + PREFIX_BYTES + headBytes;
    if (headBytes === 0) {
      return;
    }
    const head = stream.subarray(from + PREFIX_BYTES, bodyFrom);
    const get = readObject(head, 0);
    const end = bodyFrom + get(10, readInt64, 0);
    if (end > stream.length) {
      throw new Error("A table of the recording is incomplete.");
    }
    yield messageOf(get(6, readUint8, 0), head, get(8, readOffset, 0), (begin, length) =>
      stream.subarray(bodyFrom + begin, bodyFrom + begin + length),
    );
    from = end;
  }
}

type Part = (begin: number, length: number) => Uint8Array;

function messageOf(type: number, head: Uint8Array, at: number, part: Part): Message {
  const get = readObject(head, at);
  if (type === SCHEMA) {
    return { kind: "schema", fields: get(6, fieldsOf, []) };
  }
  if (type !== DICTIONARY) {
    return { kind: "batch", batch: batchOf(head, at, part) };
  }
  const batch = batchOf(head, get(6, readOffset, 0), part);
  return {
    kind: "dictionary",
    id: get(4, readInt64, 0),
    isDelta: get(8, readBoolean, false),
    batch,
  };
}

function batchOf(head: Uint8Array, at: number, part: Part): Batch {
  const get = readObject(head, at);
  return {
    nodes: readVector(head, get(6, readOffset, 0), 16, (_, place) => ({
      length: readInt64(head, place),
      nullCount: readInt64(head, place + 8),
    })),
    regions: readVector(head, get(8, readOffset, 0), 16, (_, place) =>
      part(readInt64(head, place), readInt64(head, place + 8)),
    ),
  };
}

function fieldsOf(head: Uint8Array, at: number): Field[] {
  return readVector(head, at, 4, (_, place) => {
    const get = readObject(head, place);
    return { name: get(4, readString, ""), type: typeOf(head, place) };
  });
}

function typeOf(head: Uint8Array, field: number): Type {
  const get = readObject(head, field);
  const [item] = get(14, fieldsOf, []);
  const kind = get(8, readUint8, 0);
  const own = get(10, readOffset, 0);
  const isDouble = kind === FLOAT && readObject(head, own)(4, readInt16, 0) === DOUBLE_PRECISION;
  const values = isDouble ? Float64Array : kind === FLOAT ? Float32Array : undefined;
  const plain = {
    values: kind === INTEGER ? arrayKindOf(head, own) : values,
    items: item?.type,
    dictionary: undefined,
  };
  const encoding = get(12, readOffset, 0);
  if (encoding === 0) {
    return plain;
  }
  const dictionary = readObject(head, encoding);
  return {
    values: arrayKindOf(head, dictionary(6, readOffset, 0)),
    items: undefined,
    dictionary: { id: dictionary(4, readInt64, 0), words: plain },
  };
}

/** The array for integers of a type; keys are of 32 bits if nothing is said about them. */
function arrayKindOf(head: Uint8Array, at: number): ArrayKind {
  if (at === 0) {
    return Int32Array;
  }
  const get = readObject(head, at);
  const bits = get(4, readInt32, 0);
  return (get(6, readBoolean, false) ? SIGNED : UNSIGNED)[bits] ?? Int32Array;
}
