import type { ArrowTable } from "../wire/arrow.ts";

/** What is in blocks, such as activations, by the device and the event that allocated them. */
export class BlockCategories {
  readonly #ofDevice = new Map<number, Map<number, string>>();

  append(table: ArrowTable): void {
    const [devices, events] = [table.numbers("device"), table.numbers("event")];
    table.texts("category").forEach((category, row) => {
      const device = devices[row] ?? 0;
      const ofDevice = this.#ofDevice.get(device) ?? new Map<number, string>();
      this.#ofDevice.set(device, ofDevice.set(events[row] ?? 0, category));
    });
  }

  /** What is in the block that each event of a device allocated; only what is known. */
  of(device: number): ReadonlyMap<number, string> {
    return this.#ofDevice.get(device) ?? new Map<number, string>();
  }
}
