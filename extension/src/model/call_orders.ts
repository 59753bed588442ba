import { GrowingIndices } from "../base/growing.ts";

/** Rows that have a key, such as those of a stream, in the order of the calls that caused them. */
export class CallOrders {
  readonly #rows = new Map<number, GrowingIndices>();

  /** Takes a row of a table; correlation ids mostly ascend from call to call. */
  add(key: number, row: number, correlations: ArrayLike<number>): void {
    const correlation = correlations[row] ?? 0;
    if (correlation === 0) {
      return;
    }
    const rows = this.#rows.get(key) ?? new GrowingIndices(16);
    this.#rows.set(key, rows);
    let place = rows.length;
    rows.push(row);
    for (; place > 0 && (correlations[rows.at(place - 1)] ?? 0) > correlation; place -= 1) {
      rows.set(place, rows.at(place - 1));
    }
    rows.set(place, row);
  }

  lastUpTo(key: number, correlation: number, correlations: ArrayLike<number>): number | undefined {
    const place = this.#place(key, correlation, correlations);
    return place > 0 ? this.#rows.get(key)?.at(place - 1) : undefined;
  }

  firstAfter(
    key: number,
    correlation: number,
    correlations: ArrayLike<number>,
  ): number | undefined {
    const rows = this.#rows.get(key);
    const place = this.#place(key, correlation, correlations);
    return rows !== undefined && place < rows.length ? rows.at(place) : undefined;
  }

  /** How many rows of a key have at most a correlation id. */
  #place(key: number, correlation: number, correlations: ArrayLike<number>): number {
    const rows = this.#rows.get(key);
    let low = 0;
    let high = rows?.length ?? 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((correlations[rows?.at(middle) ?? 0] ?? 0) <= correlation) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}
