import { countAtMost } from "../base/search.ts";
import type { Floats } from "./events.ts";

/** For each pixel column the smallest and largest level seen in it and the last one. */
export interface ColumnExtremes {
  readonly smallest: Floats;
  readonly largest: Floats;
  readonly last: Floats;
}

/**
 * Reduces a step line to one entry a pixel column without losing an extreme.
 *
 * A column starts with the level that the column before it ended with, so the line has no gaps.
 */
export function columnExtremes(
  timeNs: Floats,
  level: Floats,
  from: number,
  to: number,
  columns: number,
): ColumnExtremes {
  const smallest = new Float64Array(columns);
  const largest = new Float64Array(columns);
  const last = new Float64Array(columns);
  let row = countAtMost(timeNs, from);
  let current = row > 0 ? (level[row - 1] ?? 0) : 0;
  for (let column = 0; column < columns; column += 1) {
    const end = from + ((to - from) * (column + 1)) / columns;
    let low = current;
    let high = current;
    for (; row < level.length && (timeNs[row] ?? Infinity) <= end; row += 1) {
      current = level[row] ?? 0;
      low = Math.min(low, current);
      high = Math.max(high, current);
    }
    smallest[column] = low;
    largest[column] = high;
    last[column] = current;
  }
  return { smallest, largest, last };
}
