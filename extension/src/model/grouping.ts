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

/** What groups rows, whatever the window. */
export interface Labels {
  /** Below 0 of a row that is in no group. */
  readonly keys: Int32Array<ArrayBuffer>;
  /** Whole numbers from 0 on, without gaps. */
  readonly kinds: Int32Array<ArrayBuffer>;
  readonly kindCount: number;
  readonly values: Float64Array<ArrayBuffer>;
}

/** Labels rows; keys must be small numbers, and those of rows in no group below 0. */
export function label(
  count: number,
  keyOf: KeyOf,
  kindOf: KeyOf,
  valueOf: KeyOf = () => 0,
): Labels {
  const keys = new Int32Array(count);
  const kinds = new Int32Array(count);
  const values = new Float64Array(count);
  const numbers = new NumberMap();
  let most = 0;
  for (let row = 0; row < count; row += 1) {
    const key = keyOf(row);
    keys[row] = key;
    if (key >= 0) {
      const kind = kindOf(row);
      let number = numbers.get(kind);
      if (number < 0) {
        number = most;
        numbers.set(kind, number);
        most += 1;
      }
      kinds[row] = number;
      values[row] = valueOf(row);
    }
  }
  return { keys, kinds, kindCount: most, values };
}

/**
 * The rows of a window that have a key, by key.
 *
 * Rows of a group may differ in kind; the group's typical row has the most frequent one. Groups
 * come by descending time, then by count, then in the order of their keys.
 */
export function groupRows(table: Lasting, labels: Labels, window: Window): Group[] {
  const { fromNs, toNs } = table;
  const { keys } = labels;
  const [begin, end] = [window?.fromNs ?? -Infinity, window?.toNs ?? Infinity];
  const count = keys.length;
  const found = new Int32Array(count);
  let counts = new Int32Array(64);
  let most = 0;
  for (let row = 0; row < count; row += 1) {
    const key = keys[row] ?? -1;
    // As isIn, which would take twice the time.
    const from = fromNs[row] ?? 0;
    const to = toNs[row] ?? 0;
    const isInside = (from <= end && (to > begin || to === OPEN)) || (from === 0 && to === 0);
    if (key >= 0 && isInside) {
      if (key >= counts.length) {
        const longer = new Int32Array(2 * key);
        longer.set(counts);
        counts = longer;
      }
      counts[key] = (counts[key] ?? 0) + 1;
      found[most] = row;
      most += 1;
    }
  }
  const next = new Int32Array(counts.length);
  for (let key = 1; key < counts.length; key += 1) {
    next[key] = (next[key - 1] ?? 0) + (counts[key - 1] ?? 0);
  }
  const rows = new Int32Array(most);
  const lengths = new Float64Array(most);
  for (let at = 0; at < most; at += 1) {
    const row = found[at] ?? 0;
    const key = keys[row] ?? 0;
    const place = next[key] ?? 0;
    next[key] = place + 1;
    rows[place] = row;
    const from = fromNs[row] ?? 0;
    const to = toNs[row] ?? 0;
    lengths[place] = Math.max((to < end ? to : end) - (from > begin ? from : begin), 0);
  }
  const variantsOf = variantCounter(labels);
  return [...counts.keys()]
    .filter((key) => (counts[key] ?? 0) > 0)
    .map((key) => {
      const after = next[key] ?? 0;
      const first = after - (counts[key] ?? 0);
      const own = rows.subarray(first, after);
      return groupOf(own, lengths.subarray(first, after), variantsOf(own), labels.values);
    })
    .sort((left, right) => right.totalNs - left.totalNs || right.count - left.count);
}

function groupOf(
  rows: Int32Array<ArrayBuffer>,
  lengths: Float64Array<ArrayBuffer>,
  variants: Group["variants"],
  valuesByRow: Float64Array<ArrayBuffer>,
): Group {
  const values = new Float64Array(rows.length);
  let [totalNs, minNs, maxNs, longest] = [0, Infinity, -1, rows[0] ?? 0];
  for (let at = 0; at < rows.length; at += 1) {
    const row = rows[at] ?? 0;
    const lengthNs = lengths[at] ?? 0;
    values[at] = valuesByRow[row] ?? 0;
    totalNs += lengthNs;
    minNs = lengthNs < minNs ? lengthNs : minNs;
    if (lengthNs > maxNs) {
      maxNs = lengthNs;
      longest = row;
    }
  }
  return {
    rows,
    values,
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

/** Returns a function that counts the kinds of some rows; its calls share one array of counts. */
function variantCounter({
  kinds,
  kindCount,
}: Labels): (rows: Int32Array<ArrayBuffer>) => Group["variants"] {
  const counts = new Int32Array(kindCount);
  return (rows) => {
    const firsts: number[] = [];
    for (let at = 0; at < rows.length; at += 1) {
      const row = rows[at] ?? 0;
      const kind = kinds[row] ?? 0;
      const known = counts[kind] ?? 0;
      counts[kind] = known + 1;
      if (known === 0) {
        firsts.push(row);
      }
    }
    const variants = firsts.map((first) => ({ count: counts[kinds[first] ?? 0] ?? 0, first }));
    firsts.forEach((first) => {
      counts[kinds[first] ?? 0] = 0;
    });
    return variants.sort((left, right) => right.count - left.count || left.first - right.first);
  };
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
