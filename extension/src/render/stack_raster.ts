import type { Palette, Raster } from "./raster.ts";

/** Colours 0xAABBGGRR; `light` is that of bytes which are not allocated all of a pixel's time. */
export interface StackPalette extends Palette {
  readonly light: ArrayLike<number>;
}

/** Bands on top of each other, the lowest first, in stretches of a raster's columns. */
export interface BandColumns {
  /** The first column of each stretch. */
  readonly starts: ArrayLike<number>;
  /** The place of each band in the palette. */
  readonly places: ArrayLike<number>;
  /** The block of each band, if it has only one; it has an edge where it begins. */
  readonly blocks: ArrayLike<number> | undefined;
  /** The bytes of each band in the first stretch, then in the second, and so on. */
  readonly bytes: ArrayLike<number>;
  /** The height of each stretch that is not light. */
  readonly least: ArrayLike<number>;
}

const EDGE_FROM_PX = 4;

/** Paints bands, each in a colour, with so many pixels a byte. */
export function paintStack(
  raster: Raster,
  { starts, places, blocks, bytes, least }: BandColumns,
  pixelsPerByte: number,
  colours: ArrayLike<number>,
  { edge, light }: StackPalette,
): void {
  const { width, height, pixels } = raster;
  const bands = places.length;
  const yOf = (level: number): number => Math.max(height - Math.round(level * pixelsPerByte), 0);
  for (let stretch = 0, ahead = 0; stretch < starts.length; stretch += 1) {
    const left = starts[stretch] ?? 0;
    const right = starts[stretch + 1] ?? width;
    // The stretch with the column up to which an edge must have its band beside it.
    while ((starts[ahead + 1] ?? width) < left + EDGE_FROM_PX && ahead < starts.length) {
      ahead += 1;
    }
    const lightBelow = yOf(least[stretch] ?? 0);
    let level = 0;
    let bottom = height;
    for (let band = 0; band < bands; band += 1) {
      const at = stretch * bands + band;
      const size = bytes[at] ?? 0;
      if (size === 0) {
        continue;
      }
      level += size;
      const top = yOf(level);
      const place = places[band] ?? 0;
      const faint = light[place] ?? 0;
      const colour = colours[band] ?? 0;
      const border = edge[place] ?? 0;
      const dark = Math.max(top, lightBelow);
      fill(raster, left, right, top, Math.min(bottom, lightBelow), faint);
      fill(raster, left, right, dark, bottom, colour);
      const begins = blocks !== undefined && stretch > 0 && bytes[at - bands] === 0;
      if (begins && (bytes[ahead * bands + band] ?? 0) > 0) {
        fill(raster, left, left + 1, dark, bottom, border);
      }
      if (bottom - top >= EDGE_FROM_PX && top >= lightBelow) {
        pixels.fill(border, top * width + left, top * width + right);
      }
      bottom = top;
    }
  }
}

function fill(
  { width, pixels }: Raster,
  left: number,
  right: number,
  top: number,
  bottom: number,
  colour: number,
): void {
  for (let y = top; y < bottom; y += 1) {
    for (let pixel = y * width + left; pixel < y * width + right; pixel += 1) {
      pixels[pixel] = colour;
    }
  }
}
