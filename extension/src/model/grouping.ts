/** The start and end of each row, in ns. */
interface Lasting {
  readonly fromNs: ArrayLike<number>;
  readonly toNs: ArrayLike<number>;
}

/** How long a row lasts in a window, or in all; 0 if it ends before it begins. */
export function lengthIn(
  window: { readonly fromNs: number; readonly toNs: number } | undefined,
  { fromNs, toNs }: Lasting,
  row: number,
): number {
  const from = Math.max(fromNs[row] ?? 0, window?.fromNs ?? -Infinity);
  return Math.max(Math.min(toNs[row] ?? 0, window?.toNs ?? Infinity) - from, 0);
}

/** Returns an integer for a row; rows with equal integers belong together. */
export type KeyOf = (row: number) => number;

/** Statistics of the rows with one key; times in ns. */
export interface Group {
  /** The first row with the most frequent kind. */
  readonly typical: number;
  /** The number of rows of each kind, and the first of them; the most frequent kind first. */
  readonly variants: readonly { readonly count: number; readonly first: number }[];
  readonly count: number;
  readonly totalNs: number;
  readonly medianNs: number;
  readonly minNs: number;
  readonly maxNs: number;
  /** The first of the longest rows. */
  readonly longest: number;
}

/** Counts of values, for exact medians; compact because durations repeat. */
export class Counts {
  readonly #of = new Map<number, number>();
  #all = 0;

  add(value: number): void {
    this.#of.set(value, (this.#of.get(value) ?? 0) + 1);
    this.#all += 1;
  }

  get all(): number {
    return this.#all;
  }

  /** The median, rounded down between two values; undefined without values. */
  get median(): number | undefined {
    const ascending = Float64Array.from(this.#of.keys()).sort();
    let below = 0;
    let lower: number | undefined;
    for (const value of ascending) {
      below += this.#of.get(value) ?? 0;
      if (lower !== undefined) {
        return lower + Math.floor((value - lower) / 2);
      }
      if (2 * below > this.#all) {
        return value;
      }
      lower = 2 * below === this.#all ? value : undefined;
    }
    return undefined;
  }
}

/** The running totals of a group; `more` holds those of the caller. */
interface Sums<More> {
  readonly more: More;
  readonly lengthsNs: Counts;
  /** The number of rows of each kind, and the first of them. */
  readonly kinds: Map<number, { count: number; first: number }>;
  totalNs: number;
  minNs: number;
  maxNs: number;
  longest: number;
}

/**
 * Groups rows incrementally: adding a row costs the same however many there are.
 *
 * Rows of a group have the same key. They may differ in kind; the group's typical row has the most
 * frequent one. `more` creates the caller's own totals of a group.
 */
export class Groups<More> {
  readonly kindOf: KeyOf;
  readonly #table: Lasting;
  readonly #keyOf: KeyOf;
  readonly #more: () => More;
  readonly #window: Parameters<typeof lengthIn>[0];
  readonly #byKey = new Map<number, Sums<More>>();

  /** Only the time of rows in `window` counts, or all of it. */
  constructor(
    table: Lasting,
    keyOf: KeyOf,
    kindOf: KeyOf,
    more: () => More,
    window?: Parameters<typeof lengthIn>[0],
  ) {
    this.#table = table;
    this.#keyOf = keyOf;
    this.kindOf = kindOf;
    this.#more = more;
    this.#window = window;
  }

  /** Adds the next row, and returns the caller's totals of its group. */
  add(row: number): More {
    const lengthNs = lengthIn(this.#window, this.#table, row);
    const sums = this.#sumsOf(row);
    sums.lengthsNs.add(lengthNs);
    sums.totalNs += lengthNs;
    sums.minNs = Math.min(sums.minNs, lengthNs);
    if (lengthNs > sums.maxNs) {
      sums.maxNs = lengthNs;
      sums.longest = row;
    }
    count(sums, this.kindOf(row), row, 1);
    return sums.more;
  }

  /** Updates a row's kind, which was `before`; returns the caller's totals of its group. */
  changeKind(row: number, before: number): More {
    const sums = this.#sumsOf(row);
    count(sums, before, row, -1);
    count(sums, this.kindOf(row), row, 1);
    return sums.more;
  }

  /** All groups by descending time, then by count, then in the order of their first rows. */
  all(): (Group & More)[] {
    return [...this.#byKey.values()]
      .map(({ more, lengthsNs, kinds, ...times }) => {
        const variants = [...kinds.values()].sort(
          (left, right) => right.count - left.count || left.first - right.first,
        );
        const typical = variants[0]?.first ?? 0;
        const medianNs = lengthsNs.median ?? 0;
        return { ...more, ...times, typical, variants, medianNs, count: lengthsNs.all };
      })
      .sort((left, right) => right.totalNs - left.totalNs || right.count - left.count);
  }

  #sumsOf(row: number): Sums<More> {
    const key = this.#keyOf(row);
    let sums = this.#byKey.get(key);
    if (sums === undefined) {
      const times = { totalNs: 0, minNs: Infinity, maxNs: -1, longest: row };
      sums = { more: this.#more(), lengthsNs: new Counts(), kinds: new Map(), ...times };
      this.#byKey.set(key, sums);
    }
    return sums;
  }
}

function count({ kinds }: Sums<unknown>, kind: number, row: number, by: 1 | -1): void {
  const known = kinds.get(kind);
  if (known === undefined) {
    kinds.set(kind, { count: by, first: row });
  } else {
    known.count += by;
    known.first = Math.min(known.first, row);
  }
}

/** Numbers ids by text: ids with equal texts have equal numbers. */
export function numbersOf(textOf: (id: number) => string): KeyOf {
  const ofText = new Map<string, number>();
  const ofId = new Map<number, number>();
  return (id) => {
    const known = ofId.get(id);
    if (known !== undefined) {
      return known;
    }
    const text = textOf(id);
    const number = ofText.get(text) ?? ofText.size;
    ofText.set(text, number);
    ofId.set(id, number);
    return number;
  };
}

/** Combines several keys, each below 2^26, into one. */
export function joined(first: KeyOf, ...rest: readonly KeyOf[]): KeyOf {
  return rest.reduce((left, right) => {
    const numbers = new Map<number, number>();
    return (row) => {
      const pair = left(row) * 2 ** 26 + right(row);
      const number = numbers.get(pair) ?? numbers.size;
      numbers.set(pair, number);
      return number;
    };
  }, first);
}
