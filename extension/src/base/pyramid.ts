import { GrowingFloats, GrowingIndices } from "./growing.ts";

const FAN_OUT = 16;

/** For each whole group of FAN_OUT entries below, the place of its extreme and the value there. */
interface Level {
  readonly places: GrowingIndices;
  readonly values: GrowingFloats;
}

/** Finds the extreme of any run of values without looking at each; values are only added. */
export class Pyramid {
  readonly #levels: Level[] = [];
  readonly #sign: 1 | -1;
  // What the last search found; fields, because a search must not allocate.
  #place = -1;
  #highest = -Infinity;

  /** Finds the largest values where `sign` is 1, the smallest where it is -1. */
  constructor(sign: 1 | -1) {
    this.#sign = sign;
  }

  /** Takes in the values that were added since the last call; those before must be the same. */
  extend(values: Float64Array<ArrayBuffer>): void {
    let below: Level | undefined;
    let count = values.length;
    for (let depth = 0; ; depth += 1) {
      const groups = Math.floor(count / FAN_OUT);
      if (groups === 0) {
        return;
      }
      const level = (this.#levels[depth] ??= newLevel(groups));
      while (level.places.length < groups) {
        const start = level.places.length * FAN_OUT;
        const entry = extremeOf(below?.values.store ?? values, this.#sign, start, start + FAN_OUT);
        level.places.push(below === undefined ? entry : below.places.at(entry));
        level.values.push(below === undefined ? (values[entry] ?? 0) : below.values.at(entry));
      }
      below = level;
      count = groups;
    }
  }

  /** Forgets all but the first `count` values. */
  truncate(count: number): void {
    let kept = count;
    for (const { places, values } of this.#levels) {
      kept = Math.floor(kept / FAN_OUT);
      places.truncate(kept);
      values.truncate(kept);
    }
  }

  /** The index of the first extreme of `values` in [first, last), or -1 where there is none. */
  find(values: Float64Array<ArrayBuffer>, first: number, last: number): number {
    this.#search(values, first, last);
    return this.#place;
  }

  /** The extreme of `values` in [first, last), or an infinity that is no extreme of anything. */
  extreme(values: Float64Array<ArrayBuffer>, first: number, last: number): number {
    this.#search(values, first, last);
    return this.#highest * this.#sign;
  }

  #search(values: Float64Array<ArrayBuffer>, first: number, last: number): void {
    this.#place = -1;
    this.#highest = -Infinity;
    let low = first;
    let high = last;
    let below: Level | undefined;
    for (const level of this.#levels) {
      const begin = Math.ceil(low / FAN_OUT);
      const end = Math.min(Math.floor(high / FAN_OUT), level.places.length);
      if (begin >= end) {
        break;
      }
      this.#consider(values, below, low, begin * FAN_OUT);
      this.#consider(values, below, end * FAN_OUT, high);
      low = begin;
      high = end;
      below = level;
    }
    this.#consider(values, below, low, high);
  }

  /** Compares the best so far with the entries [first, last) of a level, or with the values. */
  #consider(
    values: Float64Array<ArrayBuffer>,
    level: Level | undefined,
    first: number,
    last: number,
  ): void {
    if (first < last) {
      const store = level?.values.store ?? values;
      const entry = extremeOf(store, this.#sign, first, last);
      const value = (store[entry] ?? 0) * this.#sign;
      const place = level === undefined ? entry : level.places.at(entry);
      const isFirst = value === this.#highest && place < this.#place;
      if (value > this.#highest || isFirst || this.#place < 0) {
        this.#highest = value;
        this.#place = place;
      }
    }
  }
}

function newLevel(groups: number): Level {
  return { places: new GrowingIndices(groups), values: new GrowingFloats(groups) };
}

/** The place of the first extreme of values in [first, last), which is not empty. */
function extremeOf(
  values: Float64Array<ArrayBuffer>,
  sign: 1 | -1,
  first: number,
  last: number,
): number {
  let best = first;
  let highest = (values[first] ?? 0) * sign;
  for (let place = first + 1; place < last; place += 1) {
    const value = (values[place] ?? 0) * sign;
    if (value > highest) {
      best = place;
      highest = value;
    }
  }
  return best;
}
