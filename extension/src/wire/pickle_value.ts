/** A number that was written as a floating-point one. */
export class PickleFloat {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

export type PickleItemsKind = "list" | "tuple" | "dict" | "set";

/** What a list, a tuple, a set or a dict holds; of a dict, keys and values in turn. */
export class PickleItems {
  readonly kind: PickleItemsKind;
  items: PickleValue[];

  constructor(kind: PickleItemsKind, items: PickleValue[]) {
    this.kind = kind;
    this.items = items;
  }
}

/** Bytes and integers beyond 64 bits: nothing that a snapshot needs. */
export const OTHER = Symbol("another value");

/** None is undefined; an integer is a bigint where a double does not have it exactly. */
export type PickleValue =
  undefined | boolean | number | bigint | string | PickleFloat | PickleItems | typeof OTHER;

/** A pickle is damaged, or asks for what is refused. */
export class PickleError extends Error {
  constructor(offset: number, problem: string) {
    super(`At byte ${offset}: ${problem}.`);
  }
}
