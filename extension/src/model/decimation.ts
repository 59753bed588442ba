import type { Wholes } from "../base/growing.ts";
import { Pyramid } from "../base/pyramid.ts";
import { countAtMost } from "../base/search.ts";
import type { Floats, Indices } from "./events.ts";

/** For each pixel column the smallest and largest level seen in it and the last one. */
export interface ColumnExtremes {
  readonly smallest: Floats;
  readonly largest: Floats;
  readonly last: Floats;
}

/** A level after each event, with what finds its extremes without looking at each. */
export class LevelLine {
  values: Wholes = new Uint8Array();
  readonly #largest = new Pyramid(1);
  readonly #smallest = new Pyramid(-1);

  /** Takes in the values that were added; those before must be the same. */
  extend(values: Wholes): void {
    this.values = values;
    this.#largest.extend(values);
    this.#smallest.extend(values);
  }

  largestIn(first: number, last: number): number {
    return this.#largest.extreme(first, last, this.values);
  }

  smallestIn(first: number, last: number): number {
    return this.#smallest.extreme(first, last, this.values);
  }
}

/** The number of events before each pixel column, and after the last one those until its end. */
export function columnRows(timeNs: Floats, from: number, to: number, columns: number): Indices {
  const rows = new Int32Array(columns + 1);
  rows[0] = countAtMost(timeNs, from);
  for (let column = 1; column <= columns; column += 1) {
    const end = from + ((to - from) * column) / columns;
    rows[column] = countAtMost(timeNs, end, rows[column - 1]);
  }
  return rows;
}

/**
 * Reduces a step line to one entry a pixel column without losing an extreme.
 *
 * A column starts with the level that the column before it ended with, so the line has no gaps.
 */
export function columnExtremes(line: LevelLine, rows: Indices): ColumnExtremes {
  const columns = rows.length - 1;
  const smallest = new Float64Array(columns);
  const largest = new Float64Array(columns);
  const last = new Float64Array(columns);
  let current = line.values[(rows[0] ?? 0) - 1] ?? 0;
  for (let column = 0; column < columns; column += 1) {
    const row = rows[column] ?? 0;
    const next = rows[column + 1] ?? 0;
    smallest[column] = current;
    largest[column] = current;
    if (row < next) {
      smallest[column] = Math.min(current, line.smallestIn(row, next));
      largest[column] = Math.max(current, line.largestIn(row, next));
      current = line.values[next - 1] ?? 0;
    }
    last[column] = current;
  }
  return { smallest, largest, last };
}
