import { release } from "./release.ts";

/** Non-negative integers, or any numbers as doubles. */
export type Wholes =
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

type Numbers = Wholes | Int32Array<ArrayBuffer> | Float32Array<ArrayBuffer>;

// Columns of a table grow together. Different capacities prevent all from being copied to larger
// arrays at the same time, which would block the page.
const GOLDEN = 0.618_033_988_749_895;
let share = 0;

function roomOf(capacity: number): number {
  share = (share + GOLDEN) % 1;
  return Math.ceil(Math.max(capacity, 16) * (1 + share));
}

/** A typed array that grows. */
export class Growing<T extends Numbers> {
  #create: (length: number) => T;
  #values: T;
  #length = 0;
  /** The array's length, which engines are slow to find where arrays of many kinds come. */
  #capacity: number;

  constructor(create: (length: number) => T, capacity = 16) {
    this.#create = create;
    this.#capacity = roomOf(capacity);
    this.#values = create(this.#capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** Adds a value. Subclasses repeat it for the same reason. */
  push(value: number): void {
    this.lengthen(1)[this.length - 1] = value;
  }

  append(values: ArrayLike<number>): void {
    this.#makeRoom(this.#length + values.length);
    this.#values.set(values, this.#length);
    this.#length += values.length;
  }

  /** Adds values to be set in the array returned, which holds until more are added. */
  lengthen(count: number): T {
    this.#makeRoom(this.#length + count);
    this.#length += count;
    return this.#values;
  }

  at(index: number): number {
    return this.#values[index] ?? 0;
  }

  set(index: number, value: number): void {
    this.#values[index] = value;
  }

  /** Removes all but the first `length` values. */
  truncate(length: number): void {
    this.#length = Math.min(length, this.#length);
  }

  /** The values pushed so far, without copying; empty once more room was needed for later ones. */
  view(): T {
    return this.#values.subarray(0, this.#length) as T;
  }

  /** The array of the values with unused capacity, valid until it is replaced by a larger one. */
  get store(): T {
    return this.#values;
  }

  /** Reserves capacity for later values, so that they need not be copied. */
  reserve(length: number): void {
    if (length > this.#capacity) {
      this.#move(length);
    }
  }

  /** Stores the values, and later ones, in another kind of array. */
  protected recreate(create: (length: number) => T): void {
    this.#create = create;
    this.#move(this.#capacity);
  }

  #move(length: number): void {
    const values = this.#create(length);
    values.set(this.view());
    release(this.#values.buffer);
    this.#values = values;
    this.#capacity = length;
  }

  #makeRoom(length: number): void {
    if (length > this.#capacity) {
      this.#move(Math.max(length, this.#capacity * 2));
    }
  }
}

export class GrowingFloats extends Growing<Float64Array<ArrayBuffer>> {
  constructor(capacity = 1024) {
    super((length) => new Float64Array(length), capacity);
  }

  override push(value: number): void {
    this.lengthen(1)[this.length - 1] = value;
  }
}

export class GrowingIndices extends Growing<Int32Array<ArrayBuffer>> {
  constructor(capacity = 1024) {
    super((length) => new Int32Array(length), capacity);
  }

  override push(value: number): void {
    this.lengthen(1)[this.length - 1] = value;
  }
}

/** Non-negative integers in as few bytes as the largest needs; other numbers as doubles. */
export class GrowingWholes extends Growing<Wholes> {
  #bytes = 1;

  constructor(capacity = 1024) {
    super((length) => new Uint8Array(length), capacity);
  }

  override push(value: number): void {
    this.#fit(bytesOf(value));
    super.push(value);
  }

  override append(values: ArrayLike<number>): void {
    let bytes = 1;
    for (let index = 0; index < values.length; index += 1) {
      bytes = Math.max(bytes, bytesOf(values[index] ?? 0));
    }
    this.#fit(bytes);
    super.append(values);
  }

  override set(index: number, value: number): void {
    this.#fit(bytesOf(value));
    super.set(index, value);
  }

  #fit(bytes: number): void {
    if (bytes > this.#bytes) {
      const Kind = bytes === 2 ? Uint16Array : bytes === 4 ? Uint32Array : Float64Array;
      this.#bytes = bytes;
      this.recreate((length) => new Kind(length));
    }
  }
}

function bytesOf(value: number): number {
  const isWhole = value === value >>> 0;
  return !isWhole ? 8 : value < 2 ** 8 ? 1 : value < 2 ** 16 ? 2 : 4;
}

export class GrowingBytes extends Growing<Uint8Array<ArrayBuffer>> {
  constructor(capacity = 1024) {
    super((length) => new Uint8Array(length), capacity);
  }

  override push(value: number): void {
    this.lengthen(1)[this.length - 1] = value;
  }
}

/** The storage of a column's values. */
export interface Kinds {
  readonly number: Float64Array<ArrayBuffer>;
  readonly whole: Wholes;
  readonly index: Int32Array<ArrayBuffer>;
  readonly byte: Uint8Array<ArrayBuffer>;
}

export type Kept = keyof Kinds;
type Schema = Readonly<Record<string, Kept>>;
type Views<S extends Schema> = { readonly [N in keyof S]: Kinds[S[N]] };

const CREATE = {
  number: () => new GrowingFloats(16),
  whole: () => new GrowingWholes(16),
  index: () => new GrowingIndices(16),
  byte: () => new GrowingBytes(16),
} as const;

/** Columns of equal length; added rows are visible to others once they are shown. */
export class GrowingColumns<N extends string> {
  /** The number of rows shown. */
  count = 0;
  protected readonly columns: Readonly<Record<N, Growing<Numbers>>>;
  readonly #all: readonly (readonly [N, Growing<Numbers>])[];

  constructor(schema: Readonly<Record<N, Kept>>) {
    this.#all = (Object.keys(schema) as N[]).map((name) => [name, CREATE[schema[name]]()]);
    this.columns = Object.fromEntries(this.#all) as Readonly<Record<N, Growing<Numbers>>>;
    this.show();
  }

  /** Reserves capacity for later rows. */
  reserve(rows: number): void {
    this.#all.forEach(([, column]) => column.reserve(rows));
  }

  /** The number of rows, shown or not. */
  protected get length(): number {
    return this.#all[0]?.[1].length ?? 0;
  }

  /** Adds or replaces a row. */
  protected put(values: Readonly<Record<N, number>>, row = this.length): void {
    for (const [name, column] of this.#all) {
      if (row === column.length) {
        column.push(values[name]);
      } else {
        column.set(row, values[name]);
      }
    }
  }

  protected truncate(rows: number): void {
    this.#all.forEach(([, column]) => column.truncate(rows));
  }

  /** Shows the rows added so far. */
  show(): void {
    this.count = this.length;
    const views = this.#all.map(([name, column]) => [name, column.view()]);
    Object.assign(this, Object.fromEntries(views));
  }
}

type Columns<S extends Schema> = new () => GrowingColumns<keyof S & string> & Views<S>;

/** A class with growing columns, and a typed array of the shown rows of each. */
export function columnsOf<const S extends Schema>(schema: S): Columns<S> {
  const columns = class extends GrowingColumns<keyof S & string> {
    constructor() {
      super(schema);
    }
  };
  return columns as unknown as Columns<S>;
}
