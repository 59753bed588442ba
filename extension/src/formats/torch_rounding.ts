import { type PickleValue } from "../wire/pickle_value.ts";
import { entryOf } from "./snapshot_values.ts";

// The same as in gpuviz/native/allocator/size_classes.hpp.
export const MIB = 2 ** 20;
export const SMALL_SIZE = MIB;
export const SMALL_BUFFER = 2 * MIB;
export const LEAST_BLOCK = 512;
const LOWEST_POWER = 20;
const POWERS = 16;
const MOST_DIVISIONS = 2 ** 16;

/** Of the settings that torch ran with, those that decide how large a block is. */
export class TorchRounding {
  readonly maxSplitSize: number;
  /** By power of two from 1 MiB on; 0 where there are none. */
  readonly #divisions: readonly number[];

  constructor(settings: PickleValue) {
    const size = entryOf(settings, "max_split_size");
    const isLimit = (typeof size === "number" || typeof size === "bigint") && size >= 0;
    this.maxSplitSize = isLimit && size < 2 ** 63 ? Number(size) : Infinity;
    const divisions = entryOf(settings, "roundup_power2_divisions");
    this.#divisions = Array.from({ length: POWERS }, (_, power) => {
      const parts = entryOf(divisions, String(2 ** power));
      return typeof parts === "number" && parts >= 0 && parts <= MOST_DIVISIONS ? parts : 0;
    });
  }

  /** The size of the block that serves a request. */
  blockSize(size: number): number {
    if (size < LEAST_BLOCK) {
      return LEAST_BLOCK;
    }
    const power = bitWidth(size) - 1;
    const place = Math.min(Math.max(power - LOWEST_POWER, 0), POWERS - 1);
    const parts = this.#divisions[place] ?? 0;
    if (parts > 1 && size > LEAST_BLOCK * parts) {
      const floor = 2 ** power;
      const step = floor / 2 ** (bitWidth(parts) - 1);
      if (size === floor) {
        return size;
      }
      return step < 1 ? 2 * floor : Math.ceil(size / step) * step;
    }
    return Math.ceil(size / LEAST_BLOCK) * LEAST_BLOCK;
  }
}

/** The number of bits of a positive integer. */
function bitWidth(value: number): number {
  return value < 2 ** 32 ? 32 - Math.clz32(value) : 64 - Math.clz32(value / 2 ** 32);
}
