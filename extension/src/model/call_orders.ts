import { countAtMost } from "../base/search.ts";

/** Rows that have a key, such as those of a stream, in the order of the calls that caused them. */
export class CallOrders {
  readonly #rows = new Map<number, number[]>();
  readonly #correlations = new Map<number, readonly number[]>();

  /** Takes the rows of a table that are chosen; correlation ids ascend from call to call. */
  constructor(
    keys: ArrayLike<number>,
    correlations: ArrayLike<number>,
    isChosen: (row: number) => boolean,
  ) {
    for (let row = 0; row < keys.length; row += 1) {
      if (isChosen(row) && correlations[row] !== 0) {
        const rows = this.#rows.get(keys[row] ?? 0) ?? [];
        this.#rows.set(keys[row] ?? 0, rows);
        rows.push(row);
      }
    }
    for (const [key, rows] of this.#rows) {
      rows.sort((left, right) => (correlations[left] ?? 0) - (correlations[right] ?? 0));
      this.#correlations.set(
        key,
        rows.map((row) => correlations[row] ?? 0),
      );
    }
  }

  lastUpTo(key: number, correlation: number): number | undefined {
    return this.#rows.get(key)?.[this.#place(key, correlation) - 1];
  }

  firstAfter(key: number, correlation: number): number | undefined {
    return this.#rows.get(key)?.[this.#place(key, correlation)];
  }

  #place(key: number, correlation: number): number {
    return countAtMost(this.#correlations.get(key) ?? [], correlation);
  }
}
