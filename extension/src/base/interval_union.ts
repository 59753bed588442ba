import { countAtMost } from "./search.ts";

/** The union of intervals, which tells at once how much of any interval it covers. */
export class IntervalUnion {
  readonly #begins: number[] = [];
  readonly #ends: number[] = [];
  /** What all parts up to and with each cover together. */
  readonly #covered: number[] = [];

  constructor(intervals: Iterable<readonly [begin: number, end: number]>) {
    const sorted = [...intervals].filter(([begin, end]) => end > begin);
    for (const [begin, end] of sorted.sort(([left], [right]) => left - right)) {
      const last = this.#ends.length - 1;
      if (begin <= (this.#ends[last] ?? -Infinity)) {
        this.#ends[last] = Math.max(this.#ends[last] ?? end, end);
      } else {
        this.#begins.push(begin);
        this.#ends.push(end);
      }
    }
    let total = 0;
    this.#covered = this.#begins.map((begin, part) => (total += (this.#ends[part] ?? 0) - begin));
  }

  parts(): (readonly [begin: number, end: number])[] {
    return this.#begins.map((begin, part) => [begin, this.#ends[part] ?? begin] as const);
  }

  /** How much of an interval is covered. */
  covered(begin: number, end: number): number {
    return end > begin ? this.#before(end) - this.#before(begin) : 0;
  }

  #before(at: number): number {
    const part = countAtMost(this.#begins, at) - 1;
    return part < 0 ? 0 : (this.#covered[part] ?? 0) - Math.max((this.#ends[part] ?? 0) - at, 0);
  }
}
