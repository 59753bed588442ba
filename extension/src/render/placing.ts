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
  readonly #height: number;
  readonly #rects: Rects;
  readonly #left: number;
  readonly #top: number;
  readonly #xScale: number;
  readonly #yScale: number;

  constructor({ width, height }: Raster, rects: Rects, viewport: Viewport) {
    this.#width = width;
    this.#height = height;
    this.#rects = rects;
    this.#left = viewport.left;
    this.#top = viewport.top;
    this.#xScale = width / (viewport.right - viewport.left);
    this.#yScale = height / (viewport.bottom - viewport.top);
  }

  /** Finds the pixels of a rectangle, at least one; false where it lies outside. */
  take(rect: number): boolean {
    const left = ((this.#rects.left[rect] ?? 0) - this.#left) * this.#xScale;
    const right = ((this.#rects.right[rect] ?? 0) - this.#left) * this.#xScale;
    if (right < 0 || left >= this.#width) {
      return false;
    }
    const top = ((this.#rects.top[rect] ?? 0) - this.#top) * this.#yScale;
    const bottom = ((this.#rects.bottom[rect] ?? 0) - this.#top) * this.#yScale;
    if (bottom < 0 || top >= this.#height) {
      return false;
    }
    this.fromX = nearest(left, 0, this.#width - 1);
    this.fromY = nearest(top, 0, this.#height - 1);
    this.toX = nearest(right, this.fromX + 1, this.#width);
    this.toY = nearest(bottom, this.fromY + 1, this.#height);
    const wide = right - left < 1 ? right - left : 1;
    const high = bottom - top < 1 ? bottom - top : 1;
    this.share = wide * high;
    return true;
  }
}

/** A number rounded to the nearest whole one in [low, high]. */
function nearest(value: number, low: number, high: number): number {
  const moved = value + 0.5;
  return moved < low ? low : moved > high ? high : moved | 0;
}
