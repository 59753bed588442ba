/** The rows of each group, in the order in which the groups' first rows come. */
export function groupsOf(
  rows: Iterable<number>,
  keyOf: (row: number) => number,
): readonly (readonly number[])[] {
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

/** The first row of the most frequent kind; of several that are as frequent, the first kind. */
export function typicalRow(rows: readonly number[], kindOf: (row: number) => number): number {
  const kinds = new Map<number, { readonly first: number; count: number }>();
  let typical = { first: rows[0] ?? 0, count: 0 };
  for (const row of rows) {
    const key = kindOf(row);
    const kind = kinds.get(key);
    if (kind === undefined) {
      kinds.set(key, { first: row, count: 1 });
    } else {
      kind.count += 1;
    }
  }
  for (const kind of kinds.values()) {
    typical = kind.count > typical.count ? kind : typical;
  }
  return typical.first;
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

/** One number for each pair of whole numbers below 2^26. */
export class Pairs {
  readonly #numbers = new Map<number, number>();

  of(left: number, right: number): number {
    const key = left * 2 ** 26 + right;
    const known = this.#numbers.get(key) ?? this.#numbers.size;
    this.#numbers.set(key, known);
    return known;
  }
}

/** One number for each text, whatever its id. */
export class TextNumbers {
  readonly #ofText = new Map<string, number>();
  readonly #ofId = new Map<number, number>();
  readonly #textOf: (id: number) => string;

  constructor(textOf: (id: number) => string) {
    this.#textOf = textOf;
  }

  of(id: number): number {
    const known = this.#ofId.get(id);
    if (known !== undefined) {
      return known;
    }
    const text = this.#textOf(id);
    const number = this.#ofText.get(text) ?? this.#ofText.size;
    this.#ofText.set(text, number);
    this.#ofId.set(id, number);
    return number;
  }
}

/** Orders by the first difference. */
export function byFirstDifference<T>(
  ...orders: readonly ((left: T, right: T) => number)[]
): (left: T, right: T) => number {
  return (left, right) => {
    for (const order of orders) {
      const difference = order(left, right);
      if (difference !== 0) {
        return difference;
      }
    }
    return 0;
  };
}
