/** Rows that last from one time to another. */
interface Lasting {
  readonly fromNs: ArrayLike<number>;
  readonly toNs: ArrayLike<number>;
}

/** A whole number for a row; rows with the same number are alike. */
export type KeyOf = (row: number) => number;

/** Rows that are alike: how often and how long; times in ns. */
export interface Group {
  /** The first row of the most frequent kind. */
  readonly typical: number;
  readonly count: number;
  readonly totalNs: number;
  readonly medianNs: number;
  readonly minNs: number;
  readonly maxNs: number;
  /** The first of the rows that last longest. */
  readonly longest: number;
}

/** How often each of many values came, which repeat, as lengths of time do. */
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

  /** The median of whole numbers, between two of them rounded down; undefined for none. */
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

/** What is known of a group; `more` is what the caller sums up of it. */
interface Sums<More> {
  readonly more: More;
  readonly lengthsNs: Counts;
  /** How many rows of a kind there are, and the first of them. */
  readonly kinds: Map<number, { count: number; first: number }>;
  totalNs: number;
  minNs: number;
  maxNs: number;
  longest: number;
}

/**
 * Groups rows as they come, so that each costs the same however many there are.
 *
 * Rows of a group have the same key. They may differ in kind: its typical row has the most frequent
 * one. `more` makes what the caller sums up of a group.
 */
export class Groups<More> {
  readonly kindOf: KeyOf;
  readonly #table: Lasting;
  readonly #keyOf: KeyOf;
  readonly #more: () => More;
  readonly #byKey = new Map<number, Sums<More>>();

  constructor(table: Lasting, keyOf: KeyOf, kindOf: KeyOf, more: () => More) {
    this.#table = table;
    this.#keyOf = keyOf;
    this.kindOf = kindOf;
    this.#more = more;
  }

  /** Takes a row that is later than those before; returns what the caller sums up. */
  add(row: number): More {
    const { fromNs, toNs } = this.#table;
    const lengthNs = Math.max((toNs[row] ?? 0) - (fromNs[row] ?? 0), 0);
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

  /** Counts a row as of its present kind, which was `before` when it was taken. */
  changeKind(row: number, before: number): More {
    const sums = this.#sumsOf(row);
    count(sums, before, row, -1);
    count(sums, this.kindOf(row), row, 1);
    return sums.more;
  }

  /** Most time first, then the most rows, then in the order of their first rows. */
  all(): (Group & More)[] {
    return [...this.#byKey.values()]
      .map(({ more, lengthsNs, kinds, ...times }) => {
        const byCount = [...kinds.values()].sort(
          (left, right) => right.count - left.count || left.first - right.first,
        );
        const typical = byCount[0]?.first ?? 0;
        const medianNs = lengthsNs.median ?? 0;
        return { ...more, ...times, typical, medianNs, count: lengthsNs.all };
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

/** Numbers ids by their texts: ids with the same text have the same number. */
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

/** One key for several, each below 2^26. */
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
