/** Rows that last from one time to another. */
export interface Lasting {
  readonly fromNs: ArrayLike<number>;
  readonly toNs: ArrayLike<number>;
}

/** A whole number for a row; rows with the same number are alike. */
export type KeyOf = (row: number) => number;

/** Rows that are alike by all keys: how often and how long; times in ns. */
export interface Group {
  readonly rows: readonly number[];
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

/**
 * Sums up rows by keys, most time first, then the most rows, then in the order of their first rows.
 *
 * `kinds` are keys that may differ in a group: its typical row has those that are most frequent.
 */
export function groupRows(
  table: Lasting,
  rows: Iterable<number>,
  keys: readonly KeyOf[],
  kinds: readonly KeyOf[],
): Group[] {
  const kindOf = joined(kinds);
  return rowsByKey(rows, joined(keys))
    .map((own) => ({ rows: own, typical: typicalRow(own, kindOf), ...timesOf(table, own) }))
    .sort((left, right) => right.totalNs - left.totalNs || right.count - left.count);
}

/** The rows of each key, in the order in which the keys' first rows come. */
export function rowsByKey(rows: Iterable<number>, keyOf: KeyOf): (readonly number[])[] {
  const groups = new Map<number, number[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group === undefined) {
      groups.set(key, [row]);
    } else {
      group.push(row);
    }
  }
  return [...groups.values()];
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

/** The median of whole numbers, between two of them rounded down; undefined for none. */
export function medianOf(values: ArrayLike<number>): number | undefined {
  const sorted = Float64Array.from(values).sort();
  const lower = sorted[(sorted.length - 1) >> 1];
  const upper = sorted[sorted.length >> 1];
  return lower === undefined || upper === undefined
    ? undefined
    : lower + Math.floor((upper - lower) / 2);
}

/** One key for several, each below 2^26. */
function joined([first = () => 0, ...rest]: readonly KeyOf[]): KeyOf {
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

function typicalRow(rows: readonly number[], kindOf: KeyOf): number {
  const kinds = rowsByKey(rows, kindOf);
  const most = kinds.reduce((left, right) => (right.length > left.length ? right : left), []);
  return most[0] ?? 0;
}

function timesOf(
  { fromNs, toNs }: Lasting,
  rows: readonly number[],
): Omit<Group, "rows" | "typical"> {
  const lengths = Float64Array.from(rows, (row) =>
    Math.max((toNs[row] ?? 0) - (fromNs[row] ?? 0), 0),
  );
  const maxNs = lengths.reduce((high, length) => Math.max(high, length), 0);
  return {
    count: rows.length,
    totalNs: lengths.reduce((sum, length) => sum + length, 0),
    medianNs: medianOf(lengths) ?? 0,
    minNs: lengths.reduce((low, length) => Math.min(low, length), Infinity),
    maxNs,
    longest: rows[lengths.indexOf(maxNs)] ?? 0,
  };
}
