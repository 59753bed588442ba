type Numbers =
  | Float64Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Uint8Array<ArrayBuffer>;

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
  readonly #create: (length: number) => T;
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
      const larger = this.#create(length);
      larger.set(this.view());
      this.#values = larger;
    }
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

export class GrowingIds extends Growing<Uint32Array<ArrayBuffer>> {
  constructor(capacity = 1024) {
    super((length) => new Uint32Array(length), capacity);
  }
}

export class GrowingBytes extends Growing<Uint8Array<ArrayBuffer>> {
  constructor(capacity = 1024) {
    super((length) => new Uint8Array(length), capacity);
  }
}
