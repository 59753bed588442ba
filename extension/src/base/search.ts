/** Anything with numbers in ascending order. */
export interface Ascending {
  readonly length: number;
  readonly [index: number]: number;
}

/** The number of leading values that are at most `value`. */
export function countAtMost(values: Ascending, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? Infinity) <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
