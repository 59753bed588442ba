import type { PickleValue } from "../wire/pickle_value.ts";
import { failAt, listOf, sizeOf, type Place } from "./snapshot_values.ts";

// Below it 2 * n + 1 fits the column; a program does not make as many.
const HIGHEST_OWNER = 2 ** 30;

/** The pools that a snapshot names, by torch's pairs of numbers; ids begin at 1, 0 is the default. */
export class TorchPools {
  readonly #ids = new Map<string, number>();
  readonly #pairs: (readonly [number, number])[] = [];

  idOf(pool: PickleValue, place: Place): number {
    if (pool === undefined) {
      return 0;
    }
    const parts = listOf(pool, place, "pool_id");
    if (parts.length !== 2) {
      failAt(place, "pool_id", "a pair of integers");
    }
    const pair = [sizeOf(parts[0], place, "pool_id"), sizeOf(parts[1], place, "pool_id")] as const;
    const key = pair.join(" ");
    const id = this.#ids.get(key) ?? this.#pairs.push(pair);
    this.#ids.set(key, id);
    return id;
  }

  /** The number n of each pool, as in `memory_events`, by id. */
  owners(): number[] {
    const used = new Set([0]);
    // Pools of MemPool keep torch's number; those of graph captures get the next free ones.
    for (const [capture, number] of this.#pairs) {
      if (capture === 0 && number < HIGHEST_OWNER) {
        used.add(number);
      }
    }
    let next = 1;
    const numbers = this.#pairs.map(([capture, number]) => {
      if (capture === 0 && number < HIGHEST_OWNER) {
        return number;
      }
      while (used.has(next)) {
        next += 1;
      }
      used.add(next);
      return next;
    });
    return [0, ...numbers];
  }
}
