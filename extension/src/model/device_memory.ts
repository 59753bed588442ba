import { GrowingFloats } from "../base/growing.ts";
import { countAtMost } from "../base/search.ts";
import type { ArrowTable } from "../wire/arrow.ts";

/** Samples of what was used of one device by all processes. */
export interface UsedMemory {
  readonly timeNs: Float64Array<ArrayBuffer>;
  readonly bytes: Float64Array<ArrayBuffer>;
}

/** What was used of each device by all processes, sampled in the order of time. */
export class DeviceMemory {
  readonly #ofDevice = new Map<number, { timeNs: GrowingFloats; bytes: GrowingFloats }>();

  append(table: ArrowTable): void {
    const times = table.numbers("time");
    const used = table.numbers("used");
    table.numbers("device").forEach((device, row) => {
      const samples = this.#ofDevice.get(device) ?? {
        timeNs: new GrowingFloats(16),
        bytes: new GrowingFloats(16),
      };
      this.#ofDevice.set(device, samples);
      samples.timeNs.push(times[row] ?? 0);
      samples.bytes.push(used[row] ?? 0);
    });
  }

  /** The samples of a device; undefined where there are none. */
  ofDevice(device: number): UsedMemory | undefined {
    const samples = this.#ofDevice.get(device);
    return samples && { timeNs: samples.timeNs.view(), bytes: samples.bytes.view() };
  }
}

/** The place of the latest sample at or before a time, else of the first. */
export function sampleAt({ timeNs }: UsedMemory, atNs: number): number {
  return Math.max(countAtMost(timeNs, atNs) - 1, 0);
}

export function usedAt(used: UsedMemory, atNs: number): number {
  return used.bytes[sampleAt(used, atNs)] ?? 0;
}
