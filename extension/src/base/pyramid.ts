import { GrowingFloats, GrowingIndices, type Wholes } from "./growing.ts";

const FAN_OUT = 16;

/** For each full group of FAN_OUT entries below, the position and value of its extreme. */
interface Level {
  readonly places: GrowingIndices;
  readonly values: GrowingFloats;
}

/**
 * Finds the extreme of any range of values without reading each; values are only added.
 *
 * The values are those of an array, minus those of another array `less` if given.
 */
export class Pyramid {
  readonly #levels: Level[] = [];
  readonly #sign: 1 | -1;
  // The result of the last search, in fields because a search must not allocate.
  #place = -1;
  #highest = -Infinity;

  /** Finds the largest values if `sign` is 1, the smallest if it is -1. */
  constructor(sign: 1 | -1) {
    this.#sign = sign;
  }

  /** Adds the new values since the last call; earlier values must be unchanged. */
  extend(values: Wholes, less?: Wholes): void {
    let below: Level | undefined;
    let count = values.length;
    for (let depth = 0; ; depth += 1) {
      const groups = Math.floor(count / FAN_OUT);
      if (groups === 0) {
        return;
      }
      const level = (this.#levels[depth] ??= newLevel(groups));
      const of = below?.values.store ?? values;
      const without = below === undefined ? less : undefined;
      while (level.places.length < groups) {
        const start = level.places.length * FAN_OUT;
        const entry = extremeOf(of, without, this.#sign, start, start + FAN_OUT);
        level.places.push(below === undefined ? entry : below.places.at(entry));
        level.values.push(valueAt(of, without, entry));
      }
      below = level;
      count = groups;
    }
  }

  /** Removes all but the first `count` values. */
  truncate(count: number): void {
    let kept = count;
    for (const { places, values } of this.#levels) {
      kept = Math.floor(kept / FAN_OUT);
      places.truncate(kept);
      values.truncate(kept);
    }
  }

  /** The index of the first extreme of `values` in [first, last), or -1 if it is empty. */
  find(first: number, last: number, values: Wholes, less?: Wholes): number {
    this.#search(values, less, first, last);
    return this.#place;
  }

  /** The extreme of `values` in [first, last), or the opposite infinity if it is empty. */
  extreme(first: number, last: number, values: Wholes, less?: Wholes): number {
    this.#search(values, less, first, last);
    return this.#highest * this.#sign;
  }

  #search(values: Wholes, less: Wholes | undefined, first: number, last: number): void {
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
      this.#consider(values, less, below, low, begin * FAN_OUT);
      this.#consider(values, less, below, end * FAN_OUT, high);
      low = begin;
      high = end;
      below = level;
    }
    this.#consider(values, less, below, low, high);
  }

  /** Compares the best so far with the entries [first, last) of a level, or with the values. */
  #consider(
    values: Wholes,
    less: Wholes | undefined,
    level: Level | undefined,
    first: number,
    last: number,
  ): void {
    if (first < last) {
      const of = level?.values.store ?? values;
      const without = level === undefined ? less : undefined;
      const entry = extremeOf(of, without, this.#sign, first, last);
      const value = valueAt(of, without, entry) * this.#sign;
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

function valueAt(values: Wholes, less: Wholes | undefined, place: number): number {
  const value = values[place] ?? 0;
  return less === undefined ? value : value - (less[place] ?? 0);
}

/** The position of the first extreme of values in [first, last), which is not empty. */
function extremeOf(
  values: Wholes,
  less: Wholes | undefined,
  sign: 1 | -1,
  first: number,
  last: number,
): number {
  let best = first;
  let highest = valueAt(values, less, first) * sign;
  for (let place = first + 1; place < last; place += 1) {
    const value = valueAt(values, less, place) * sign;
    if (value > highest) {
      best = place;
      highest = value;
    }
  }
  return best;
}
