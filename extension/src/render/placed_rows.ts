import type { Rects, Viewport } from "./raster.ts";

/** From which to which row of pixels each rectangle reaches: what moving in time does not change. */
export class PlacedRows {
  fromY: Uint16Array<ArrayBuffer> = new Uint16Array();
  /** The row after the last, or 0 where the rectangle lies outside. */
  toY: Uint16Array<ArrayBuffer> = new Uint16Array();
  /** The part of a row that a rectangle covers, 1 where it covers whole ones. */
  share: Float32Array<ArrayBuffer> = new Float32Array();
  readonly #height: number;
  #top: ArrayLike<number> | undefined;
  #range = "";

  constructor(height: number) {
    this.#height = height;
  }

  /** Places the rectangles, unless they and the range are those of the last time. */
  place(rects: Rects, { top: from, bottom: to }: Viewport): void {
    const range = `${from} ${to}`;
    if (this.#top === rects.top && this.#range === range) {
      return;
    }
    this.#top = rects.top;
    this.#range = range;
    this.fromY = new Uint16Array(rects.count);
    this.toY = new Uint16Array(rects.count);
    this.share = new Float32Array(rects.count);
    const height = this.#height;
    const scale = height / (to - from);
    for (let rect = 0; rect < rects.count; rect += 1) {
      const top = ((rects.top[rect] ?? 0) - from) * scale;
      const bottom = ((rects.bottom[rect] ?? 0) - from) * scale;
      if (bottom >= 0 && top < height) {
        const first = nearest(top, 0, height - 1);
        this.fromY[rect] = first;
        this.toY[rect] = nearest(bottom, first + 1, height);
        this.share[rect] = Math.min(bottom - top, 1);
      }
    }
  }
}

/** A number rounded to the nearest whole one in [low, high]. */
export function nearest(value: number, low: number, high: number): number {
  const moved = value + 0.5;
  return moved < low ? low : moved > high ? high : moved | 0;
}
