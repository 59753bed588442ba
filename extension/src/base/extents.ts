import { GrowingFloats } from "./growing.ts";

const GROUP = 256;

/** The extents of runs of intervals, so that runs outside a range can be skipped. */
export class Extents {
  #count = 0;
  #to: ArrayLike<number> = [];
  readonly #lowest = new GrowingFloats(16);
  /** NaN if the end of an interval of the run has changed since it was computed. */
  readonly #highest = new GrowingFloats(16);

  /** Adds the new intervals since the last call. */
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

  /** Marks an interval whose end has changed. */
  touch(place: number): void {
    if (place < this.#count) {
      this.#highest.set(Math.floor(place / GROUP), NaN);
    }
  }

  /** Runs [first, last) of intervals, in order, which include all that overlap [low, high]. */
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
