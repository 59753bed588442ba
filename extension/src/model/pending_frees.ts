import { Extents } from "../base/extents.ts";
import { GrowingFloats, GrowingIndices } from "../base/growing.ts";
import { NOTHING, NumberMap } from "../base/number_map.ts";
import type { Floats, Indices } from "./events.ts";

/** Times in which a block was given back that a stream might still use, as columns. */
export class PendingFrees {
  count = 0;
  block: Indices = new Int32Array();
  fromNs: Floats = new Float64Array();
  /** Infinity while it is pending. */
  toNs: Floats = new Float64Array();
  readonly extents = new Extents();
  readonly #block = new GrowingIndices(16);
  readonly #fromNs = new GrowingFloats(16);
  readonly #toNs = new GrowingFloats(16);
  readonly #open = new NumberMap();

  begin(block: number, timeNs: number): void {
    if (this.#open.get(block) === NOTHING) {
      this.#open.set(block, this.#block.length);
      this.#block.push(block);
      this.#fromNs.push(timeNs);
      this.#toNs.push(Infinity);
    }
  }

  end(block: number, timeNs: number): void {
    const place = this.#open.get(block);
    if (place !== NOTHING) {
      this.#open.delete(block);
      this.#toNs.set(place, timeNs);
      this.extents.touch(place);
    }
  }

  /** Takes back the last one, which is that of a block: its free was no matter of waiting. */
  undo(block: number): void {
    const place = this.#open.get(block);
    this.#open.delete(block);
    if (place < this.count) {
      // It has been shown; others count on its place.
      this.#fromNs.set(place, Infinity);
    } else {
      for (const column of [this.#block, this.#fromNs, this.#toNs]) {
        column.truncate(place);
      }
    }
  }

  /** Lets the columns have what was added. */
  show(): void {
    this.count = this.#block.length;
    this.block = this.#block.view();
    this.fromNs = this.#fromNs.view();
    this.toNs = this.#toNs.view();
    this.extents.extend(this.fromNs, this.toNs, this.count);
  }
}
