import { Growing } from "../base/growing.ts";

/** The first and last pixel row of each rectangle, which do not depend on the time window. */
export class PlacedRows {
  readonly #fromY = new Growing((length) => new Uint16Array(length));
  readonly #toY = new Growing((length) => new Uint16Array(length));
  readonly #share = new Growing((length) => new Float32Array(length));
  #from = 0;
  #scale = 0;
  #height = 0;
  #key = "";

  /** Starts over, unless the height, the range of data and its revision are unchanged. */
  begin(height: number, from: number, to: number, revision: number): void {
    const key = `${height} ${from} ${to} ${revision}`;
    if (key !== this.#key) {
      this.#key = key;
      this.#height = height;
      this.#from = from;
      this.#scale = height / (to - from);
      this.restart();
    }
  }

  /** Discards all rows. */
  restart(): void {
    for (const column of [this.#fromY, this.#toY, this.#share]) {
      column.truncate(0);
    }
  }

  /** The number of placed rectangles. */
  get count(): number {
    return this.#fromY.length;
  }

  get fromY(): Uint16Array<ArrayBuffer> {
    return this.#fromY.store;
  }

  /** The row after the last, or 0 if the rectangle lies outside. */
  get toY(): Uint16Array<ArrayBuffer> {
    return this.#toY.store;
  }

  /** The covered share of a rectangle's only row; 1 if it covers whole rows. */
  get share(): Float32Array<ArrayBuffer> {
    return this.#share.store;
  }

  /** Places the next rectangle. */
  push(topOfData: number, bottomOfData: number): void {
    const height = this.#height;
    const top = (topOfData - this.#from) * this.#scale;
    const bottom = (bottomOfData - this.#from) * this.#scale;
    const isSeen = bottom >= 0 && top < height;
    const first = isSeen ? nearest(top, 0, height - 1) : 0;
    const place = this.count;
    this.#fromY.lengthen(1)[place] = first;
    this.#toY.lengthen(1)[place] = isSeen ? nearest(bottom, first + 1, height) : 0;
    this.#share.lengthen(1)[place] = bottom - top < 1 ? bottom - top : 1;
  }
}

/** A number rounded to the nearest integer in [low, high]. */
export function nearest(value: number, low: number, high: number): number {
  const moved = value + 0.5;
  return moved < low ? low : moved > high ? high : moved | 0;
}
