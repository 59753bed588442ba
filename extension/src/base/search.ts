/** Anything with numbers in ascending order. */
export interface Ascending {
  readonly length: number;
  readonly [index: number]: number;
}

/** The number of leading values that are at most `value`; those before `start` are known to be. */
export function countAtMost(values: Ascending, value: number, start = 0): number {
  let step = 1;
  while (start + step <= values.length && (values[start + step - 1] ?? Infinity) <= value) {
    step *= 2;
  }
  let low = start + (step >>> 1);
  let high = Math.min(start + step, values.length);
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

/** The number of leading values below `value`; those before `start` are known to be. */
export function countBelow(values: Ascending, value: number, start = 0): number {
  let step = 1;
  while (start + step <= values.length && (values[start + step - 1] ?? Infinity) < value) {
    step *= 2;
  }
  let low = start + (step >>> 1);
  let high = Math.min(start + step, values.length);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? Infinity) < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
