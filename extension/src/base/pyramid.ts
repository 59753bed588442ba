import { GrowingIndices } from "./growing.ts";

const FAN_OUT = 16;

/** Finds the extreme of any run of values without looking at each; values are only added. */
export class Pyramid {
  /** An entry of level k is the index of the extreme of a whole group of FAN_OUT^(k+1) values. */
  readonly #levels: GrowingIndices[] = [];
  readonly #sign: 1 | -1;

  /** Finds the largest values where `sign` is 1, the smallest where it is -1. */
  constructor(sign: 1 | -1) {
    this.#sign = sign;
  }

  /** Takes in the values that were added since the last call; those before must be the same. */
  extend(values: ArrayLike<number>): void {
    let below: ArrayLike<number> | undefined;
    for (let depth = 0; ; depth += 1) {
      const groups = Math.floor((below ?? values).length / FAN_OUT);
      if (groups === 0) {
        return;
      }
      const level = (this.#levels[depth] ??= new GrowingIndices(groups));
      while (level.length < groups) {
        const start = level.length * FAN_OUT;
        let best = below?.[start] ?? start;
        for (let place = start + 1; place < start + FAN_OUT; place += 1) {
          best = this.#better(values, best, below?.[place] ?? place);
        }
        level.push(best);
      }
      below = level.view();
    }
  }

  /** Forgets all but the first `count` values. */
  truncate(count: number): void {
    let kept = count;
    for (const level of this.#levels) {
      kept = Math.floor(kept / FAN_OUT);
      level.truncate(kept);
    }
  }

  /** The index of the extreme of `values` in [first, last), or -1 where there is none. */
  find(values: ArrayLike<number>, first: number, last: number): number {
    let best = -1;
    let place = first;
    while (place < last) {
      let width = 1;
      let found = place;
      for (const level of this.#levels) {
        const wider = width * FAN_OUT;
        if (place % wider !== 0 || place + wider > last || place / wider >= level.length) {
          break;
        }
        width = wider;
        found = level.at(place / wider);
      }
      best = best < 0 ? found : this.#better(values, best, found);
      place += width;
    }
    return best;
  }

  /** Of two places the one with the more extreme value, the first if they are equal. */
  #better(values: ArrayLike<number>, left: number, right: number): number {
    return ((values[right] ?? 0) - (values[left] ?? 0)) * this.#sign > 0 ? right : left;
  }
}
