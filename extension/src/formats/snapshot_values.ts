import { PickleFloat, PickleItems, type PickleValue } from "../wire/pickle_value.ts";

const LARGEST_SIZE = 2 ** 59;
/** Of all addresses and sizes of a snapshot. */
export const END_OF_MEMORY = 2 ** 60;
export const MOST_DEVICES = 1024;

// One event costs less than two rows, and has more than two bytes in the file.
const ROWS_OF_A_VALUE = 1 / 64;

/**
 * Bounds the work for a file: more rows than it has bytes means that it names rows again and again.
 */
export class RowBudget {
  #left: number;

  constructor(fileBytes: number) {
    this.#left = fileBytes;
  }

  /** Takes one row of so many keys and values. */
  take(values: number, place: Place): void {
    this.#left -= 1 + ROWS_OF_A_VALUE * values;
    if (this.#left < 0) {
      failAt(place, "", "each row of a snapshot to be written once; there are more than bytes");
    }
  }
}

/** Where a value is, for errors. */
export interface Place {
  readonly list: string;
  position?: number;
  readonly inner?: string;
  innerPosition?: number;
}

export function failAt(place: Place, key: string, expected: string): never {
  const position = place.position === undefined ? "" : `[${place.position}]`;
  const inner = place.inner === undefined ? "" : `.${place.inner}`;
  const innerPosition = place.innerPosition === undefined ? "" : `[${place.innerPosition}]`;
  const what = key === "" ? expected : `"${key}" to be ${expected}`;
  throw new Error(
    `It is no torch memory snapshot at ${place.list}${position}${inner}${innerPosition}: expected ${what}.`,
  );
}

export function listOf(value: PickleValue, place: Place, key = ""): readonly PickleValue[] {
  if (!(value instanceof PickleItems) || (value.kind !== "list" && value.kind !== "tuple")) {
    failAt(place, key, "a list");
  }
  return value.items;
}

/** The keys and values of a dict, in turn. */
export function dictOf(value: PickleValue, place: Place, key = ""): readonly PickleValue[] {
  if (!(value instanceof PickleItems) || value.kind !== "dict") {
    failAt(place, key, "a dict");
  }
  return value.items;
}

export function sizeOf(value: PickleValue, place: Place, key: string): number {
  if ((typeof value === "number" || typeof value === "bigint") && value >= 0) {
    if (value < LARGEST_SIZE) {
      return Number(value);
    }
  }
  return failAt(place, key, "an integer of at least 0 and below 2**59");
}

/** An integer of 64 bits without sign; of a negative one the same bits. */
export function wordOf(value: PickleValue, place: Place, key: string): number {
  if (typeof value === "number" && value >= 0) {
    return value;
  }
  if (typeof value === "number" || (typeof value === "bigint" && value >= -LARGEST_SIZE)) {
    return Number(BigInt.asUintN(64, BigInt(value)));
  }
  return failAt(place, key, "an integer below 2**64");
}

export function textOf(value: PickleValue, place: Place, key: string): string {
  return typeof value === "string" ? value : failAt(place, key, "a text");
}

/** Microseconds since 1970, 0 where the file does not say. */
export function timeOf(value: PickleValue, place: Place): number {
  if (value === undefined) {
    return 0;
  }
  if (value instanceof PickleFloat) {
    const time = value.value;
    return time >= 0 && time < LARGEST_SIZE
      ? Math.trunc(time)
      : failAt(place, "time_us", "microseconds since 1970");
  }
  return sizeOf(value, place, "time_us");
}

/** What a dict has under a key, None where it has not. */
export function entryOf(dict: PickleValue, name: string): PickleValue {
  let found: PickleValue;
  if (dict instanceof PickleItems && dict.kind === "dict") {
    for (let index = 0; index + 1 < dict.items.length; index += 2) {
      if (dict.items[index] === name) {
        found = dict.items[index + 1];
      }
    }
  }
  return found;
}
