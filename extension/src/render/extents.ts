const GROUP = 256;

/** From where to where runs of intervals reach, so that those out of sight cost nothing. */
export class Extents {
  readonly #count: number;
  readonly #lowest: Float64Array<ArrayBuffer>;
  readonly #highest: Float64Array<ArrayBuffer>;

  constructor(from: ArrayLike<number>, to: ArrayLike<number>, count: number) {
    const groups = Math.ceil(count / GROUP);
    this.#count = count;
    this.#lowest = new Float64Array(groups).fill(Infinity);
    this.#highest = new Float64Array(groups).fill(-Infinity);
    for (let place = 0; place < count; place += 1) {
      const group = Math.floor(place / GROUP);
      this.#lowest[group] = Math.min(this.#lowest[group] ?? 0, from[place] ?? 0);
      this.#highest[group] = Math.max(this.#highest[group] ?? 0, to[place] ?? 0);
    }
  }

  /** Runs [first, last) of intervals, in their order; all that reach into [low, high] are in one. */
  *overlapping(low: number, high: number): Generator<readonly [first: number, last: number]> {
    let first = -1;
    for (let group = 0; group < this.#lowest.length; group += 1) {
      const isSeen = (this.#lowest[group] ?? 0) <= high && (this.#highest[group] ?? 0) >= low;
      if (isSeen && first < 0) {
        first = group * GROUP;
      } else if (!isSeen && first >= 0) {
        yield [first, group * GROUP];
        first = -1;
      }
    }
    if (first >= 0) {
      yield [first, this.#count];
    }
  }
}
