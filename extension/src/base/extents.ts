import { GrowingFloats } from "./growing.ts";

const GROUP = 256;

/** From where to where runs of intervals reach, so that those out of sight cost nothing. */
export class Extents {
  #count = 0;
  #to: ArrayLike<number> = [];
  readonly #lowest = new GrowingFloats(16);
  /** NaN where an interval of the run has a new end since it was reckoned. */
  readonly #highest = new GrowingFloats(16);

  /** Takes in the intervals that were added since the last call. */
  extend(from: ArrayLike<number>, to: ArrayLike<number>, count: number): void {
    this.#to = to;
    for (let place = this.#count; place < count; place += 1) {
      const group = Math.floor(place / GROUP);
      if (group === this.#lowest.length) {
        this.#lowest.push(Infinity);
        this.#highest.push(-Infinity);
      }
      this.#lowest.set(group, Math.min(this.#lowest.at(group), from[place] ?? 0));
      this.#highest.set(group, Math.max(this.#highest.at(group), to[place] ?? 0));
    }
    this.#count = count;
  }

  /** Notes that an interval ends elsewhere than before. */
  touch(place: number): void {
    if (place < this.#count) {
      this.#highest.set(Math.floor(place / GROUP), NaN);
    }
  }

  /** Runs [first, last) of intervals, in their order; all that reach into [low, high] are in one. */
  *overlapping(low: number, high: number): Generator<readonly [first: number, last: number]> {
    let first = -1;
    for (let group = 0; group < this.#lowest.length; group += 1) {
      const isSeen = this.#lowest.at(group) <= high && this.#highestOf(group) >= low;
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

  #highestOf(group: number): number {
    const known = this.#highest.at(group);
    if (!Number.isNaN(known)) {
      return known;
    }
    let highest = -Infinity;
    const last = Math.min((group + 1) * GROUP, this.#count);
    for (let place = group * GROUP; place < last; place += 1) {
      highest = Math.max(highest, this.#to[place] ?? 0);
    }
    this.#highest.set(group, highest);
    return highest;
  }
}
