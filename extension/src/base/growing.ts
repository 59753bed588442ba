/** A Float64Array that grows. */
export class GrowingFloats {
  #values: Float64Array<ArrayBuffer>;
  #length = 0;

  constructor(capacity = 1024) {
    this.#values = new Float64Array(Math.max(capacity, 16));
  }

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Float64Array(this.#values.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  /** The values pushed so far, without copying. */
  view(): Float64Array<ArrayBuffer> {
    return this.#values.subarray(0, this.#length);
  }
}
