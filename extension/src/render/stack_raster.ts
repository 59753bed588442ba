import type { Palette, Raster } from "./raster.ts";

/** Colours 0xAABBGGRR; `light` is that of bytes which are not allocated all of a pixel's time. */
export interface StackPalette extends Palette {
  readonly light: ArrayLike<number>;
}

/** Bands on top of each other, the lowest first, in each column of a raster. */
export interface BandColumns {
  /** The place of each band in the palette. */
  readonly places: ArrayLike<number>;
  /** The block of each band, if it has only one; it has an edge where it begins. */
  readonly blocks: ArrayLike<number> | undefined;
  /** The bytes of each band in the first column, then in the second, and so on. */
  readonly bytes: ArrayLike<number>;
  /** The height of each column that is not light. */
  readonly least: ArrayLike<number>;
}

const EDGE_FROM_PX = 4;

/** Paints bands, each in a colour, with so many pixels a byte. */
export function paintStack(
  { width, height, pixels }: Raster,
  { places, blocks, bytes, least }: BandColumns,
  pixelsPerByte: number,
  colours: ArrayLike<number>,
  { edge, light }: StackPalette,
): void {
  const bands = places.length;
  const yOf = (level: number): number => Math.max(height - Math.round(level * pixelsPerByte), 0);
  for (let x = 0; x < width; x += 1) {
    const lightBelow = yOf(least[x] ?? 0);
    let level = 0;
    let bottom = height;
    for (let band = 0; band < bands; band += 1) {
      const at = x * bands + band;
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
      const begins = blocks !== undefined && x > 0 && bytes[at - bands] === 0;
      const isEdge = begins && (bytes[at + bands * (EDGE_FROM_PX - 1)] ?? 0) > 0;
      for (let y = top, pixel = top * width + x; y < bottom; y += 1, pixel += width) {
        pixels[pixel] = y < lightBelow ? faint : isEdge ? border : colour;
      }
      if (bottom - top >= EDGE_FROM_PX && top >= lightBelow) {
        pixels[top * width + x] = border;
      }
      bottom = top;
    }
  }
}
