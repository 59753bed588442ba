/** The result of `NumberMap.get` for an absent key. */
export const NOTHING = -1;

const LEAST_PLACES = 64;
const SPREAD = 0x9e3779b1;

/** A map from integers, such as addresses, to non-negative numbers; much faster than Map. */
export class NumberMap {
  #keys = new Float64Array(LEAST_PLACES);
  #values = new Int32Array(LEAST_PLACES).fill(NOTHING);
  #count = 0;

  get(key: number): number {
    return this.#values[this.#find(key)] ?? NOTHING;
  }

  /** Sets a value, which is 0 or more. */
  set(key: number, value: number): void {
    let place = this.#find(key);
    if (this.#values[place] === NOTHING) {
      this.#count += 1;
      if (this.#count * 2 > this.#keys.length) {
        this.#grow();
        place = this.#find(key);
      }
      this.#keys[place] = key;
    }
    this.#values[place] = value;
  }

  delete(key: number): void {
    let hole = this.#find(key);
    if (this.#values[hole] === NOTHING) {
      return;
    }
    this.#count -= 1;
    const mask = this.#keys.length - 1;
    // Entries up to the next hole may have been displaced from their own slots.
    for (
      let place = (hole + 1) & mask;
      this.#values[place] !== NOTHING;
      place = (place + 1) & mask
    ) {
      const home = this.#homeOf(this.#keys[place] ?? 0);
      if (((place - home) & mask) >= ((place - hole) & mask)) {
        this.#keys[hole] = this.#keys[place] ?? 0;
        this.#values[hole] = this.#values[place] ?? NOTHING;
        hole = place;
      }
    }
    this.#values[hole] = NOTHING;
  }

  /** The slot of a key, or the free slot for it. */
  #find(key: number): number {
    const mask = this.#keys.length - 1;
    let place = this.#homeOf(key);
    while (this.#values[place] !== NOTHING && this.#keys[place] !== key) {
      place = (place + 1) & mask;
    }
    return place;
  }

  #homeOf(key: number): number {
    const bits = Math.imul((key | 0) ^ Math.imul((key / 2 ** 32) | 0, SPREAD), SPREAD);
    return (bits ^ (bits >>> 15)) & (this.#keys.length - 1);
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#keys = new Float64Array(keys.length * 2);
    this.#values = new Int32Array(keys.length * 2).fill(NOTHING);
    for (let place = 0; place < keys.length; place += 1) {
      const value = values[place] ?? NOTHING;
      if (value !== NOTHING) {
        const free = this.#find(keys[place] ?? 0);
        this.#keys[free] = keys[place] ?? 0;
        this.#values[free] = value;
      }
    }
  }
}
