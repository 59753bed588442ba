import { countAtMost } from "./search.ts";

export interface AddressRange {
  readonly address: number;
  size: number;
}

const LARGEST_PART = 256;

/** Ranges of addresses, ascending, at most one at each address; they may overlap. */
export class AddressMap<R extends AddressRange> {
  // Never empty but for the first, so that the first addresses of parts ascend.
  #parts: R[][] = [[]];
  #firsts: number[] = [];

  *[Symbol.iterator](): Generator<R> {
    for (const part of this.#parts) {
      yield* part;
    }
  }

  /** The range that begins at an address. */
  at(address: number): R | undefined {
    const range = this.upTo(address);
    return range?.address === address ? range : undefined;
  }

  /** The last range that begins at most at an address. */
  upTo(address: number): R | undefined {
    const part = this.#parts[this.#partOf(address)] ?? [];
    return part[countUpTo(part, address) - 1];
  }

  /** The first range that begins after an address. */
  after(address: number): R | undefined {
    const place = this.#partOf(address);
    const part = this.#parts[place] ?? [];
    return part[countUpTo(part, address)] ?? this.#parts[place + 1]?.[0];
  }

  /** The first range that ends after an address. */
  overlapping(address: number): R | undefined {
    const previous = this.upTo(address);
    return previous !== undefined && previous.address + previous.size > address
      ? previous
      : this.after(address);
  }

  /** Adds a range, in place of one at its address. */
  set(range: R): void {
    const place = this.#partOf(range.address);
    const part = this.#parts[place] ?? [];
    const count = countUpTo(part, range.address);
    const isKnown = part[count - 1]?.address === range.address;
    part.splice(isKnown ? count - 1 : count, isKnown ? 1 : 0, range);
    this.#firsts[place] = part[0]?.address ?? 0;
    if (part.length > LARGEST_PART) {
      const rest = part.splice(LARGEST_PART / 2);
      this.#parts.splice(place + 1, 0, rest);
      this.#firsts.splice(place + 1, 0, rest[0]?.address ?? 0);
    }
  }

  delete(range: R): void {
    const place = this.#partOf(range.address);
    const part = this.#parts[place] ?? [];
    part.splice(countUpTo(part, range.address) - 1, 1);
    if (part.length > 0) {
      this.#firsts[place] = part[0]?.address ?? 0;
    } else {
      this.#firsts.splice(place, 1);
      this.#parts.splice(place, this.#parts.length > 1 ? 1 : 0);
    }
  }

  #partOf(address: number): number {
    return Math.max(countAtMost(this.#firsts, address) - 1, 0);
  }
}

function countUpTo(part: readonly AddressRange[], address: number): number {
  let low = 0;
  let high = part.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((part[middle]?.address ?? Infinity) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
