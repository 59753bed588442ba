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

  /** The level that the event at `row` found. */
  levelBefore(row: number): number {
    return this.values[row - 1] ?? 0;
  }

  largestIn(first: number, last: number): number {
    return this.#largest.extreme(first, last, this.values);
  }

  /** The first row of [first, last) with the largest level. */
  largestRow(first: number, last: number): number {
    return this.#largest.find(first, last, this.values);
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
  return {
    smallest: columnSmallest(line, rows),
    largest: columnLargest(line, rows),
    last: byColumn(rows, (_, next) => line.levelBefore(next)),
  };
}

/** The largest level of each column alone. */
export function columnLargest(line: LevelLine, rows: Indices): Floats {
  return byColumn(rows, (row, next) => Math.max(line.levelBefore(row), line.largestIn(row, next)));
}

/** The smallest level of each column alone. */
export function columnSmallest(line: LevelLine, rows: Indices): Floats {
  return byColumn(rows, (row, next) => Math.min(line.levelBefore(row), line.smallestIn(row, next)));
}

function byColumn(rows: Indices, valueOf: (row: number, next: number) => number): Floats {
  const values = new Float64Array(rows.length - 1);
  for (let column = 0; column < values.length; column += 1) {
    values[column] = valueOf(rows[column] ?? 0, rows[column + 1] ?? 0);
  }
  return values;
}
