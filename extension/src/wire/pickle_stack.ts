import {
  PickleError,
  PickleItems,
  type PickleItemsKind,
  type PickleValue,
} from "./pickle_value.ts";

// As in Python's own pickles, where a memo may have gaps only after an optimizer.
const LARGEST_MEMO_GAP = 4096;
const MOST_MEMORY_BYTES = 3 * 2 ** 30;
// About what they cost in V8.
const CONTAINER_BYTES = 64;
const ITEM_BYTES = 8;
const TEXT_BYTES = 24;

/** What the opcodes of a pickle work on: a stack, marks in it, and a memo. */
export class PickleStack {
  /** Of the opcode that is at work, for errors. */
  offset = 0;
  readonly #values: PickleValue[] = [];
  readonly #marks: number[] = [];
  readonly #memo: PickleValue[] = [];
  readonly #missing = new Set<number>();
  readonly #texts = new Map<string, string>();
  #highest = 0;
  #usedBytes = 0;

  push(value: PickleValue): void {
    this.#values.push(value);
    if (this.#values.length > this.#highest) {
      this.#highest = this.#values.length;
      this.#charge(ITEM_BYTES);
    }
  }

  /** Of equal texts only one is kept. */
  pushText(text: string): void {
    let known = this.#texts.get(text);
    if (known === undefined) {
      this.#charge(TEXT_BYTES + text.length);
      this.#texts.set(text, text);
      known = text;
    }
    this.push(known);
  }

  top(): PickleValue {
    this.#need(1);
    return this.#values.at(-1);
  }

  mark(): void {
    this.#charge(ITEM_BYTES);
    this.#marks.push(this.#values.length);
  }

  /** The number of values above the last mark, which is gone then. */
  popMark(): number {
    const height = this.#marks.pop();
    if (height === undefined) {
      this.#fail("an opcode needs a mark, and there is none");
    }
    return this.#values.length - height;
  }

  popOrUnmark(): void {
    if (this.#marks.at(-1) === this.#values.length) {
      this.#marks.pop();
    } else {
      this.#need(1);
      this.#values.pop();
    }
  }

  drop(count: number): void {
    this.#values.length -= count;
  }

  /** Puts a container of the last values in their place. */
  pushItems(kind: PickleItemsKind, count: number): void {
    this.#need(count);
    this.push(new PickleItems(kind, this.#take(kind, count)));
    this.#charge(CONTAINER_BYTES);
  }

  /** Moves the last values into the container before them. */
  extend(kind: PickleItemsKind, count: number): void {
    this.#need(count + 1);
    const container = this.#values.at(-1 - count);
    if (!(container instanceof PickleItems) || container.kind !== kind) {
      this.#fail("an opcode adds to a container of another kind");
    }
    const added = this.#take(kind, count);
    if (container.items.length === 0) {
      container.items = added;
      return;
    }
    for (const value of added) {
      container.items.push(value);
    }
  }

  /** Puts the last value into the memo, at its end where no place is given. */
  remember(place: number | undefined): void {
    const memo = this.#memo;
    const number = place ?? memo.length;
    const value = this.top();
    if (number >= memo.length + LARGEST_MEMO_GAP) {
      this.#fail(`the memo's entry ${number} comes after entry ${memo.length - 1}`);
    }
    this.#charge(ITEM_BYTES);
    while (memo.length < number) {
      this.#missing.add(memo.length);
      memo.push(undefined);
    }
    this.#missing.delete(number);
    memo[number] = value;
  }

  recall(number: number): void {
    if (number >= this.#memo.length || this.#missing.has(number)) {
      this.#fail(`the memo's entry ${number} is used before it is made`);
    }
    this.push(this.#memo[number]);
  }

  /** The value of the whole pickle. */
  only(): PickleValue {
    if (this.#values.length !== 1 || this.#marks.length > 0) {
      this.#fail(`the pickle ends with ${this.#values.length} values, expected 1`);
    }
    return this.#values[0];
  }

  #need(count: number): void {
    if (this.#values.length - (this.#marks.at(-1) ?? 0) < count) {
      this.#fail("an opcode uses a value that is not there");
    }
  }

  #take(kind: PickleItemsKind, count: number): PickleValue[] {
    if (kind === "dict" && count % 2 !== 0) {
      this.#fail("a dict has a key without a value");
    }
    this.#charge(ITEM_BYTES * count);
    return count === 0 ? [] : this.#values.splice(this.#values.length - count);
  }

  #charge(bytes: number): void {
    this.#usedBytes += bytes;
    if (this.#usedBytes > MOST_MEMORY_BYTES) {
      this.#fail("the file's values need more than 3 GiB of memory, the most that is read here");
    }
  }

  #fail(problem: string): never {
    throw new PickleError(this.offset, problem);
  }
}
