import { nearest, type PlacedRows } from "./placed_rows.ts";
import type { Raster, Rects, Viewport } from "./raster.ts";

/** The pixels of one rectangle at a time. */
export class Placing {
  fromX = 0;
  toX = 0;
  fromY = 0;
  toY = 0;
  /** The part of a pixel that the rectangle covers, 1 where it covers whole ones. */
  share = 1;
  readonly #width: number;
  readonly #rects: Rects;
  readonly #rows: PlacedRows;
  readonly #left: number;
  readonly #scale: number;

  constructor({ width, rows }: Raster, rects: Rects, viewport: Viewport) {
    rows.place(rects, viewport);
    this.#width = width;
    this.#rects = rects;
    this.#rows = rows;
    this.#left = viewport.left;
    this.#scale = width / (viewport.right - viewport.left);
  }

  /** Finds the pixels of a rectangle, at least one; false where it lies outside. */
  take(rect: number): boolean {
    const left = ((this.#rects.left[rect] ?? 0) - this.#left) * this.#scale;
    const right = ((this.#rects.right[rect] ?? 0) - this.#left) * this.#scale;
    this.toY = this.#rows.toY[rect] ?? 0;
    if (right < 0 || left >= this.#width || this.toY === 0) {
      return false;
    }
    this.fromX = nearest(left, 0, this.#width - 1);
    this.toX = nearest(right, this.fromX + 1, this.#width);
    this.fromY = this.#rows.fromY[rect] ?? 0;
    const wide = right - left < 1 ? right - left : 1;
    this.share = wide * (this.#rows.share[rect] ?? 1);
    return true;
  }
}
