/** A sequence of numbers in ascending order. */
export interface Ascending {
  readonly length: number;
  readonly [index: number]: number;
}

/** The number of leading values that are at most `value`; all before `start` must be. */
export function countAtMost(values: Ascending, value: number, start = 0): number {
  return countLeading(values, start, (each) => each <= value);
}

/** The number of leading values below `value`; all before `start` must be. */
export function countBelow(values: Ascending, value: number, start = 0): number {
  return countLeading(values, start, (each) => each < value);
}

/** Searches near the start first, then by bisection. */
function countLeading(
  values: Ascending,
  start: number,
  isLeading: (value: number) => boolean,
): number {
  const leads = (place: number): boolean => isLeading(values[place] ?? Infinity);
  let step = 1;
  while (start + step <= values.length && leads(start + step - 1)) {
    step *= 2;
  }
  let low = start + (step >>> 1);
  let high = Math.min(start + step, values.length);
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
