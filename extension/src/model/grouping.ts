import { NumberMap } from "../base/number_map.ts";
import { OPEN } from "./ranges.ts";

/** The start and end of each row, in ns. */
export interface Lasting {
  readonly fromNs: ArrayLike<number>;
  readonly toNs: ArrayLike<number>;
}

/** A range in ns; undefined for all of the recording. */
export type Window = { readonly fromNs: number; readonly toNs: number } | undefined;

/** How long a row lasts in a window, or in all; 0 if it ends before it begins. */
export function lengthIn(window: Window, { fromNs, toNs }: Lasting, row: number): number {
  const from = Math.max(fromNs[row] ?? 0, window?.fromNs ?? -Infinity);
  return Math.max(Math.min(toNs[row] ?? 0, window?.toNs ?? Infinity) - from, 0);
}

/** Rows without times are in every window. */
export function isIn(window: Window, { fromNs, toNs }: Lasting, row: number): boolean {
  const [from, to] = [fromNs[row] ?? 0, toNs[row] ?? 0];
  return (
    window === undefined ||
    (from <= window.toNs && (to > window.fromNs || to === OPEN)) ||
    (from === 0 && to === 0)
  );
}

/** Returns an integer for a row; rows with equal integers belong together. */
export type KeyOf = (row: number) => number;

/** Statistics of the rows with one key; times in ns. */
export interface Group {
  /** The rows, ascending. */
  readonly rows: Int32Array<ArrayBuffer>;
  /** What the caller asked for of each row. */
  readonly values: Float64Array<ArrayBuffer>;
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

/**
 * The rows of a window that have a key, which is not below 0, by key; keys must be small numbers.
 *
 * Rows of a group may differ in kind; the group's typical row has the most frequent one. Groups
 * come by descending time, then by count, then in the order of their keys. What `valueOf` returns
 * of their rows is in their `values`.
 */
export function groupRows(
  table: Lasting & { readonly count: number },
  keyOf: KeyOf,
  kindOf: KeyOf,
  window: Window,
  valueOf: KeyOf = () => 0,
): Group[] {
  const { fromNs, toNs, count } = table;
  const [begin, end] = [window?.fromNs ?? -Infinity, window?.toNs ?? Infinity];
  // In the order of the rows, for memory is read in this order much faster.
  const found = new Members(count);
  const keys = new Int32Array(count);
  let counts = new Int32Array(64);
  let most = 0;
  for (let row = 0; row < count; row += 1) {
    // As isIn and lengthIn, which would take twice the time.
    const from = fromNs[row] ?? 0;
    const to = toNs[row] ?? 0;
    const isInside = (from <= end && (to > begin || to === OPEN)) || (from === 0 && to === 0);
    const key = isInside ? keyOf(row) : -1;
    if (key >= 0) {
      if (key >= counts.length) {
        const longer = new Int32Array(2 * key);
        longer.set(counts);
        counts = longer;
      }
      counts[key] = (counts[key] ?? 0) + 1;
      keys[most] = key;
      found.rows[most] = row;
      found.lengths[most] = Math.max((to < end ? to : end) - (from > begin ? from : begin), 0);
      found.kinds[most] = kindOf(row);
      found.values[most] = valueOf(row);
      most += 1;
    }
  }
  const next = new Int32Array(counts.length);
  for (let key = 1; key < counts.length; key += 1) {
    next[key] = (next[key - 1] ?? 0) + (counts[key - 1] ?? 0);
  }
  const sorted = new Members(most);
  for (let at = 0; at < most; at += 1) {
    const key = keys[at] ?? 0;
    const place = next[key] ?? 0;
    next[key] = place + 1;
    sorted.rows[place] = found.rows[at] ?? 0;
    sorted.lengths[place] = found.lengths[at] ?? 0;
    sorted.kinds[place] = found.kinds[at] ?? 0;
    sorted.values[place] = found.values[at] ?? 0;
  }
  return [...counts.keys()]
    .filter((key) => (counts[key] ?? 0) > 0)
    .map((key) => groupOf(sorted, (next[key] ?? 0) - (counts[key] ?? 0), next[key] ?? 0))
    .sort((left, right) => right.totalNs - left.totalNs || right.count - left.count);
}

/** Rows with what groups need of them. */
class Members {
  readonly rows: Int32Array<ArrayBuffer>;
  readonly lengths: Float64Array<ArrayBuffer>;
  readonly kinds: Float64Array<ArrayBuffer>;
  readonly values: Float64Array<ArrayBuffer>;

  constructor(count: number) {
    this.rows = new Int32Array(count);
    this.lengths = new Float64Array(count);
    this.kinds = new Float64Array(count);
    this.values = new Float64Array(count);
  }
}

function groupOf(members: Members, first: number, after: number): Group {
  const rows = members.rows.subarray(first, after);
  const lengths = members.lengths.subarray(first, after);
  let [totalNs, minNs, maxNs, longest] = [0, Infinity, -1, rows[0] ?? 0];
  for (let at = 0; at < rows.length; at += 1) {
    const lengthNs = lengths[at] ?? 0;
    totalNs += lengthNs;
    minNs = lengthNs < minNs ? lengthNs : minNs;
    if (lengthNs > maxNs) {
      maxNs = lengthNs;
      longest = rows[at] ?? 0;
    }
  }
  const variants = variantsOf(rows, members.kinds.subarray(first, after));
  return {
    rows,
    values: members.values.subarray(first, after),
    typical: variants[0]?.first ?? 0,
    variants,
    count: rows.length,
    totalNs,
    medianNs: medianOf(lengths) ?? 0,
    minNs,
    maxNs,
    longest,
  };
}

function variantsOf(
  rows: Int32Array<ArrayBuffer>,
  kinds: Float64Array<ArrayBuffer>,
): Group["variants"] {
  const numbers = new NumberMap();
  const variants: { count: number; first: number }[] = [];
  for (let at = 0; at < rows.length; at += 1) {
    const kind = kinds[at] ?? 0;
    const variant = variants[numbers.get(kind)];
    if (variant === undefined) {
      numbers.set(kind, variants.length);
      variants.push({ count: 1, first: rows[at] ?? 0 });
    } else {
      variant.count += 1;
    }
  }
  return variants.sort((left, right) => right.count - left.count || left.first - right.first);
}

/** The median, rounded down between two values, which it puts in another order. */
export function medianOf(values: Float64Array<ArrayBuffer>): number | undefined {
  const middle = (values.length - 1) >> 1;
  const lower = selected(values, middle);
  if (values.length % 2 === 1 || lower === undefined) {
    return lower;
  }
  let upper = Infinity;
  for (let at = middle + 1; at < values.length; at += 1) {
    upper = Math.min(upper, values[at] ?? Infinity);
  }
  return lower + Math.floor((upper - lower) / 2);
}

/** The value that a place would have in ascending order; all that are smaller come before it. */
function selected(values: Float64Array<ArrayBuffer>, place: number): number | undefined {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const pivot = values[(low + high) >> 1] ?? 0;
    let [left, right] = [low, high];
    while (left <= right) {
      while ((values[left] ?? 0) < pivot) {
        left += 1;
      }
      while ((values[right] ?? 0) > pivot) {
        right -= 1;
      }
      if (left <= right) {
        const value = values[left] ?? 0;
        values[left] = values[right] ?? 0;
        values[right] = value;
        left += 1;
        right -= 1;
      }
    }
    if (place <= right) {
      high = right;
    } else if (place >= left) {
      low = left;
    } else {
      break;
    }
  }
  return values[place];
}

/** Numbers ids by text: ids with equal texts have equal numbers. */
export function numbersOf(textOf: (id: number) => string): KeyOf {
  const ofText = new Map<string, number>();
  const ofId = new NumberMap();
  return (id) => {
    const known = ofId.get(id);
    if (known >= 0) {
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
    const numbers = new NumberMap();
    let count = 0;
    return (row) => {
      const pair = left(row) * 2 ** 26 + right(row);
      const known = numbers.get(pair);
      if (known >= 0) {
        return known;
      }
      numbers.set(pair, count);
      count += 1;
      return count - 1;
    };
  }, first);
}
