/** Whole numbers from 0 on, or, as doubles, any. */
export type Wholes =
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

type Numbers = Wholes | Int32Array<ArrayBuffer> | Float32Array<ArrayBuffer>;

// Columns of one table fill up at once. With rooms of different sizes they are not all moved to
// larger ones at once, which would hold up the page.
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

  constructor(create: (length: number) => T, capacity = 16) {
    this.#create = create;
    this.#values = create(roomOf(capacity));
  }

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    this.#makeRoom(this.#length + 1);
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  append(values: ArrayLike<number>): void {
    this.#makeRoom(this.#length + values.length);
    this.#values.set(values, this.#length);
    this.#length += values.length;
  }

  at(index: number): number {
    return this.#values[index] ?? 0;
  }

  set(index: number, value: number): void {
    this.#values[index] = value;
  }

  /** Forgets all but the first `length` values. */
  truncate(length: number): void {
    this.#length = Math.min(length, this.#length);
  }

  /** The values pushed so far, without copying. */
  view(): T {
    return this.#values.subarray(0, this.#length) as T;
  }

  /** The array that holds the values, with room behind them, until they outgrow it. */
  get store(): T {
    return this.#values;
  }

  /** Makes room for values that will come, so that they need not be moved later. */
  reserve(length: number): void {
    if (length > this.#values.length) {
      this.#move(length);
    }
  }

  /** Keeps the values, and those to come, in arrays of another kind. */
  protected recreate(create: (length: number) => T): void {
    this.#create = create;
    this.#move(this.#values.length);
  }

  #move(length: number): void {
    const values = this.#create(length);
    values.set(this.view());
    this.#values = values;
  }

  #makeRoom(length: number): void {
    if (length > this.#values.length) {
      this.reserve(Math.max(length, this.#values.length * 2));
    }
  }
}

export class GrowingFloats extends Growing<Float64Array<ArrayBuffer>> {
  constructor(capacity = 1024) {
    super((length) => new Float64Array(length), capacity);
  }
}

export class GrowingIndices extends Growing<Int32Array<ArrayBuffer>> {
  constructor(capacity = 1024) {
    super((length) => new Int32Array(length), capacity);
  }
}

/** Whole numbers from 0 on, each in as few bytes as the largest needs; any others as doubles. */
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
}
