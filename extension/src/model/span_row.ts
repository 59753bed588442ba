import { GrowingBytes, GrowingFloats, GrowingIndices } from "../base/growing.ts";
import { Pyramid } from "../base/pyramid.ts";
import { countBelow } from "../base/search.ts";

/** For each pixel column of a row what is in it. */
export interface RowColumns {
  /** The part of the column's time that spans take, from 0 to 1. */
  readonly share: Float32Array<ArrayBuffer>;
  /** The span that takes most of it, or -1 where there is none. */
  readonly span: Int32Array<ArrayBuffer>;
}

/** A span this many columns wide is drawn with whole columns only. */
const WHOLE_FROM_COLUMNS = 2;
const SUMMED = 8;

/** Spans one after the other, none of which overlap, summed up for every zoom. */
export class SpanRow {
  readonly #fromNs = new GrowingFloats(16);
  readonly #toNs = new GrowingFloats(16);
  /** The time that all spans before the first of each group of SUMMED take together. */
  readonly #takenNs = new GrowingFloats(16);
  readonly #kind = new GrowingBytes(16);
  readonly #source = new GrowingIndices(16);
  readonly #longest = new Pyramid(1);
  readonly #kinds = new Set<number>();

  get count(): number {
    return this.#fromNs.length;
  }

  get fromNs(): Float64Array<ArrayBuffer> {
    return this.#fromNs.view();
  }

  get toNs(): Float64Array<ArrayBuffer> {
    return this.#toNs.view();
  }

  get kind(): Uint8Array<ArrayBuffer> {
    return this.#kind.view();
  }

  /** For each span its row in the table that it comes from. */
  get source(): Int32Array<ArrayBuffer> {
    return this.#source.view();
  }

  /** When the last span ends. */
  get endNs(): number {
    return this.count === 0 ? -Infinity : this.#toNs.at(this.count - 1);
  }

  /** The kinds that spans in it have, or had. */
  get kinds(): ReadonlySet<number> {
    return this.#kinds;
  }

  /** Adds a span that begins when or after the last one ends; the last may have no end. */
  push(fromNs: number, toNs: number, kind: number, source: number): void {
    if (this.count % SUMMED === 0) {
      this.#takenNs.push(this.#takenBefore(this.count));
    }
    this.#fromNs.push(fromNs);
    this.#toNs.push(toNs);
    this.#kind.push(kind);
    this.#source.push(source);
    this.#kinds.add(kind);
  }

  /** Gives an end to the last span if it is that of a kind and source, and has none. */
  end(kind: number, source: number, toNs: number): boolean {
    const last = this.count - 1;
    const isMeant = this.#kind.at(last) === kind && this.#source.at(last) === source;
    if (last < 0 || !isMeant || this.#toNs.at(last) !== Infinity) {
      return false;
    }
    const fromNs = this.#fromNs.at(last);
    this.truncate(last);
    this.push(fromNs, Math.max(toNs, fromNs), kind, source);
    return true;
  }

  truncate(count: number): void {
    for (const column of [this.#fromNs, this.#toNs, this.#kind, this.#source]) {
      column.truncate(count);
    }
    this.#takenNs.truncate(Math.ceil(count / SUMMED));
    this.#longest.truncate(count);
  }

  /** Sums up what is in each of `width` columns between two times, losing no span. */
  columns(fromNs: number, toNs: number, width: number): RowColumns {
    const begins = this.fromNs;
    const ends = this.toNs;
    const share = new Float32Array(width);
    const span = new Int32Array(width).fill(-1);
    const columnNs = (toNs - fromNs) / width;
    this.#longest.extend(ends, begins);
    let first = firstAfter(begins, ends, fromNs);
    let last = first;
    for (let column = 0; column < width; column += 1) {
      const left = fromNs + column * columnNs;
      const right = column === width - 1 ? toNs : fromNs + (column + 1) * columnNs;
      if (column > 0) {
        first = last > 0 && (ends[last - 1] ?? 0) > left ? last - 1 : last;
      }
      last = countBelow(begins, right, last);
      if (first < last) {
        const taken = this.#takenBetween(first, last, left, right) / columnNs;
        const isWhole = this.#areWide(first, last, columnNs);
        if (!isWhole || taken >= 0.5) {
          share[column] = isWhole ? 1 : taken;
          span[column] = this.#mainSpan(first, last, left, right);
        }
      }
    }
    return { share, span };
  }

  /** How much of a window spans take, in ns. */
  takenIn(fromNs: number, toNs: number): number {
    const [first, last] = this.range(fromNs, toNs);
    return first < last ? this.#takenBetween(first, last, fromNs, toNs) : 0;
  }

  /** The first span that is in [fromNs, toNs), and the one after the last. */
  range(fromNs: number, toNs: number): readonly [first: number, last: number] {
    const first = firstAfter(this.fromNs, this.toNs, fromNs);
    return [first, countBelow(this.fromNs, toNs, first)];
  }

  #takenBetween(first: number, last: number, left: number, right: number): number {
    const end = last - 1;
    const before = Math.max(left - this.#fromNs.at(first), 0);
    const within = Math.min(this.#toNs.at(end), right) - this.#fromNs.at(end);
    const whole =
      end - first < SUMMED
        ? this.#takenBy(first, end)
        : this.#takenBefore(end) - this.#takenBefore(first);
    return whole - before + within;
  }

  #takenBefore(span: number): number {
    const group = Math.min(Math.floor(span / SUMMED), this.#takenNs.length - 1);
    return this.#takenNs.at(group) + this.#takenBy(Math.max(group, 0) * SUMMED, span);
  }

  #takenBy(first: number, last: number): number {
    let takenNs = 0;
    for (let span = first; span < last; span += 1) {
      takenNs += this.#durationNs(span);
    }
    return takenNs;
  }

  #durationNs(span: number): number {
    return this.#toNs.at(span) - this.#fromNs.at(span);
  }

  /** Whether the few spans in a column are so wide that none is lost when it is left to another. */
  #areWide(first: number, last: number, columnNs: number): boolean {
    const least = WHOLE_FROM_COLUMNS * columnNs;
    return (
      last - first <= 2 && this.#durationNs(first) >= least && this.#durationNs(last - 1) >= least
    );
  }

  #mainSpan(first: number, last: number, left: number, right: number): number {
    const end = last - 1;
    const within = (span: number): number =>
      Math.min(this.#toNs.at(span), right) - Math.max(this.#fromNs.at(span), left);
    const edge = within(end) > within(first) ? end : first;
    if (last - first <= 2) {
      return edge;
    }
    const inner = this.#longest.find(first + 1, end, this.#toNs.store, this.#fromNs.store);
    return within(inner) > within(edge) ? inner : edge;
  }
}

/** The first span that does not end before a time; one that ends just then only without length. */
function firstAfter(
  begins: Float64Array<ArrayBuffer>,
  ends: Float64Array<ArrayBuffer>,
  timeNs: number,
): number {
  const first = countBelow(ends, timeNs);
  const touches = ends[first] === timeNs && (begins[first] ?? timeNs) < timeNs;
  return touches ? first + 1 : first;
}
