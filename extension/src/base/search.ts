/** A sequence of numbers in ascending order. */
export interface Ascending {
  readonly length: number;
  readonly [index: number]: number;
}

/** The number of leading values that are at most `value`; all before `start` must be. */
export function countAtMost(values: Ascending, value: number, start = 0): number {
  return countLeading(values.length, (place) => (values[place] ?? Infinity) <= value, start);
}

/** The number of leading values below `value`; all before `start` must be. */
export function countBelow(values: Ascending, value: number, start = 0): number {
  return countLeading(values.length, (place) => (values[place] ?? Infinity) < value, start);
}

/**
 * The number of leading places for which a condition holds, which must hold for all before `start`.
 *
 * Searches near the start first, then by bisection.
 */
export function countLeading(length: number, leads: (place: number) => boolean, start = 0): number {
  let step = 1;
  while (start + step <= length && leads(start + step - 1)) {
    step *= 2;
  }
  let low = start + (step >>> 1);
  let high = Math.min(start + step, length);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (leads(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
