import { GrowingIndices } from "./growing.ts";
import { NumberMap } from "./number_map.ts";

const NONE = -1;
const LARGEST_DENSE_KEY = 1 << 26;

/** The rows of a growing table by key, for keys that are usually small. */
export class RowsByKey {
  readonly #dense = new GrowingIndices();
  readonly #sparse = new NumberMap();
  readonly #next = new GrowingIndices();

  /** Adds the keys of the next rows; 0 means no key. */
  append(keys: ArrayLike<number>): void {
    for (let index = 0; index < keys.length; index += 1) {
      this.#push(keys[index] ?? 0);
    }
  }

  /** Reserves capacity for later rows. */
  reserve(rows: number): void {
    this.#next.reserve(rows);
  }

  /** The latest row with a key, or undefined. */
  last(key: number): number | undefined {
    const row = this.#head(key);
    return row === NONE || key === 0 ? undefined : row;
  }

  /** All rows with a key, ascending. */
  all(key: number): number[] {
    const rows: number[] = [];
    const next = this.#next.view();
    for (let row = this.last(key) ?? NONE; row !== NONE; row = next[row] ?? NONE) {
      rows.push(row);
    }
    return rows.reverse();
  }

  #push(key: number): void {
    const row = this.#next.length;
    this.#next.push(this.#head(key));
    if (key >= LARGEST_DENSE_KEY) {
      this.#sparse.set(key, row);
      return;
    }
    while (this.#dense.length <= key) {
      this.#dense.push(NONE);
    }
    this.#dense.set(key, row);
  }

  #head(key: number): number {
    if (key >= LARGEST_DENSE_KEY) {
      return this.#sparse.get(key);
    }
    return key < this.#dense.length ? this.#dense.at(key) : NONE;
  }
}
