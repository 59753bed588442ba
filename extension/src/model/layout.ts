import { GrowingFloats } from "../base/growing.ts";
import { countAtMost, countBelow } from "../base/search.ts";

/** Stacks every address that was ever reserved, in order, without the empty space between. */
export class AddressLayout {
  totalBytes = 0;
  /** Goes up when an address may have another place than before. */
  revision = 0;
  /** By region: what to add to an address for its place. */
  readonly #shifts = new GrowingFloats(16);
  /** Apart from each other, and ascending. */
  readonly #from: number[] = [];
  readonly #to: number[] = [];
  /** By which numbers regions are known; one that grew together from several has several. */
  readonly #numbers: (readonly number[])[] = [];
  #isSettled = true;

  get shifts(): Float64Array<ArrayBuffer> {
    return this.#shifts.view();
  }

  /** Takes in a range; ranges that touch become one region. Returns the region's number. */
  add(from: number, to: number): number {
    const first = countBelow(this.#to, from);
    const [low = Infinity, high = -Infinity] = [this.#from[first], this.#to[first]];
    const known = this.#numbers[first]?.[0];
    if (low <= from && to <= high && known !== undefined) {
      return known;
    }
    return this.#unite(from, to, first);
  }

  /** Gives places to what was added. */
  settle(): void {
    if (this.#isSettled) {
      return;
    }
    let total = 0;
    for (const [place, numbers] of this.#numbers.entries()) {
      const from = this.#from[place] ?? 0;
      for (const number of numbers) {
        this.#shifts.set(number, total - from);
      }
      total += (this.#to[place] ?? 0) - from;
    }
    this.totalBytes = total;
    this.revision += 1;
    this.#isSettled = true;
  }

  /** The place of an address on the stacked axis, in bytes. */
  offsetOf(address: number): number {
    const region = this.#numbers[countAtMost(this.#from, address) - 1]?.[0];
    return region === undefined ? 0 : address + this.#shifts.at(region);
  }

  #unite(from: number, to: number, first: number): number {
    let last = first;
    while (last < this.#from.length && (this.#from[last] ?? Infinity) <= to) {
      last += 1;
    }
    const known = this.#numbers.slice(first, last).flat();
    const numbers = known.length > 0 ? known : [this.#shifts.length];
    if (known.length === 0) {
      this.#shifts.push(0);
    }
    const low = Math.min(from, this.#from[first] ?? from);
    const high = Math.max(to, last > first ? (this.#to[last - 1] ?? to) : to);
    this.#from.splice(first, last - first, last > first ? low : from);
    this.#to.splice(first, last - first, high);
    this.#numbers.splice(first, last - first, numbers);
    this.#isSettled = false;
    return numbers[0] ?? 0;
  }
}
