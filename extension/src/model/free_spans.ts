import { countBelow } from "../base/search.ts";

const LEAST_BYTES = 512;

/** Spans of free addresses, apart from each other and ascending, with their sum and largest. */
export class FreeSpans {
  total = 0;
  #from = new Float64Array(64);
  #to = new Float64Array(64);
  #count = 0;
  /** The number of spans of each size, by powers of two of the size. */
  readonly #sizes = Array.from({ length: 33 }, () => new Map<number, number>());

  /** The size of the largest span; NaN if it has to be found. */
  #largest = 0;

  /** The size of the largest span. */
  get largest(): number {
    if (Number.isNaN(this.#largest)) {
      this.#largest = this.#findLargest();
    }
    return this.#largest;
  }

  #findLargest(): number {
    for (let power = this.#sizes.length - 1; power >= 0; power -= 1) {
      const sizes = this.#sizes[power];
      if (sizes !== undefined && sizes.size > 0) {
        return Math.max(...sizes.keys());
      }
    }
    return 0;
  }

  /** Adds a span that is apart from others; it joins those that it touches unless there is a wall. */
  add(from: number, to: number, isWall: (address: number) => boolean): void {
    const place = countBelow(this.#ends, from);
    const joinsBefore = place < this.#count && this.#to[place] === from && !isWall(from);
    const next = place < this.#count && this.#to[place] === from ? place + 1 : place;
    const joinsNext = next < this.#count && this.#from[next] === to && !isWall(to);
    const end = joinsNext ? (this.#to[next] ?? to) : to;
    if (joinsBefore) {
      this.#resize(place, this.#from[place] ?? from, end);
      if (joinsNext) {
        this.#remove(next);
      }
    } else if (joinsNext) {
      this.#resize(next, from, end);
    } else {
      this.#insert(next, from, to);
    }
  }

  /** Cuts a range of addresses out of the spans; returns how many bytes of it were in them. */
  cut(from: number, to: number): number {
    const before = this.total;
    let place = countBelow(this.#ends, from + 1);
    while (place < this.#count && (this.#from[place] ?? 0) < to) {
      const [low = 0, high = 0] = [this.#from[place], this.#to[place]];
      if (low < from) {
        this.#resize(place, low, from);
        place += 1;
        if (high > to) {
          this.#insert(place, to, high);
        }
      } else if (high > to) {
        this.#resize(place, to, high);
      } else {
        this.#remove(place);
      }
    }
    return before - this.total;
  }

  get #ends(): Float64Array {
    return this.#to.subarray(0, this.#count);
  }

  #insert(place: number, from: number, to: number): void {
    if (this.#count === this.#from.length) {
      this.#from = grown(this.#from);
      this.#to = grown(this.#to);
    }
    for (const [values, value] of [
      [this.#from, from],
      [this.#to, to],
    ] as const) {
      values.copyWithin(place + 1, place, this.#count);
      values[place] = value;
    }
    this.#count += 1;
    this.#note(to - from, 1);
  }

  #resize(place: number, from: number, to: number): void {
    this.#note((this.#to[place] ?? 0) - (this.#from[place] ?? 0), -1);
    this.#from[place] = from;
    this.#to[place] = to;
    this.#note(to - from, 1);
  }

  #remove(place: number): void {
    this.#note((this.#to[place] ?? 0) - (this.#from[place] ?? 0), -1);
    this.#from.copyWithin(place, place + 1, this.#count);
    this.#to.copyWithin(place, place + 1, this.#count);
    this.#count -= 1;
  }

  #note(size: number, change: 1 | -1): void {
    this.total += change * size;
    const sizes = this.#sizes[32 - Math.clz32(size / LEAST_BYTES)];
    const count = (sizes?.get(size) ?? 0) + change;
    if (count > 0) {
      sizes?.set(size, count);
    } else {
      sizes?.delete(size);
    }
    if (size > this.#largest) {
      this.#largest = size;
    } else if (size === this.#largest && count === 0) {
      this.#largest = NaN;
    }
  }
}

function grown(values: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  const more = new Float64Array(2 * values.length);
  more.set(values);
  return more;
}
