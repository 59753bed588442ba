import { Extents } from "../base/extents.ts";
import { columnsOf } from "../base/growing.ts";
import { NOTHING, NumberMap } from "../base/number_map.ts";

/** Times in which a block was given back that a stream might still use, as columns. */
export class PendingFrees extends columnsOf({
  block: "index",
  fromNs: "number",
  // Infinity while it is pending.
  toNs: "number",
}) {
  readonly extents = new Extents();
  readonly #open = new NumberMap();

  begin(block: number, timeNs: number): void {
    if (this.#open.get(block) === NOTHING) {
      this.#open.set(block, this.length);
      this.put({ block, fromNs: timeNs, toNs: Infinity });
    }
  }

  end(block: number, timeNs: number): void {
    const place = this.#open.get(block);
    if (place !== NOTHING) {
      this.#open.delete(block);
      this.columns.toNs.set(place, timeNs);
      this.extents.touch(place);
    }
  }

  /** Takes back the one of a block, which would be the last: its free was no matter of waiting. */
  undo(block: number): void {
    const place = this.#open.get(block);
    if (place === NOTHING) {
      return;
    }
    this.#open.delete(block);
    if (place < this.count) {
      // It has been shown; others count on its place.
      this.columns.fromNs.set(place, Infinity);
    } else {
      this.truncate(place);
    }
  }

  /** Shows the rows added so far, and takes in their extents. */
  settle(): void {
    this.show();
    this.extents.extend(this.fromNs, this.toNs, this.count);
  }
}
