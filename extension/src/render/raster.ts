import type { Extents } from "./extents.ts";
import { PlacedRows } from "./placed_rows.ts";
import { Placing } from "./placing.ts";
import { SharedPixels } from "./shared_pixels.ts";

/** Pixels (0xAABBGGRR) and for each pixel the rectangle in it plus one, or 0. */
export interface Raster {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint32Array<ArrayBuffer>;
  readonly ids: Int32Array<ArrayBuffer>;
  readonly shared: SharedPixels;
  readonly rows: PlacedRows;
}

/** Rectangles in data space as columns. */
export interface Rects {
  readonly count: number;
  /** How many leading rectangles lie behind the others, which may show them through. */
  readonly backdrop: number;
  readonly left: ArrayLike<number>;
  readonly right: ArrayLike<number>;
  readonly top: ArrayLike<number>;
  readonly bottom: ArrayLike<number>;
  /** The place in the palette. */
  readonly colour: ArrayLike<number>;
  /** Tells which runs of rectangles may lie between two values of the horizontal axis. */
  readonly extents?: Extents;
  /** 1 where stripes are painted instead of a plain fill. */
  readonly striped: ArrayLike<number>;
}

/** The part of the data space that fills the raster. */
export interface Viewport {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Fill and edge colours, 0xAABBGGRR. */
export interface Palette {
  readonly fill: ArrayLike<number>;
  readonly edge: ArrayLike<number>;
}

// Shorter runs are faster set one by one than by a call.
const FILL_FROM_PX = 24;
const EDGE_FROM_PX = 4;
const STRIPE_PERIOD_PX = 6;
const STRIPE_PX = 3;

export function createRaster(width: number, height: number): Raster {
  return {
    width,
    height,
    pixels: new Uint32Array(width * height),
    ids: new Int32Array(width * height),
    shared: new SharedPixels(width, height),
    rows: new PlacedRows(height),
  };
}

/** An empty raster: the one before where it has the size, for a new one costs milliseconds. */
export function clearedRaster(before: Raster, width: number, height: number): Raster {
  if (before.width !== width || before.height !== height) {
    return createRaster(width, height);
  }
  before.pixels.fill(0);
  before.ids.fill(0);
  return before;
}

/**
 * Paints rectangles in their order.
 *
 * Each takes at least one pixel, however short or small, so that nothing vanishes; those smaller
 * than a pixel share it with the backdrop, as strongly as they cover it.
 */
export function paintRects(
  raster: Raster,
  rects: Rects,
  viewport: Viewport,
  palette: Palette,
): void {
  const place = new Placing(raster, rects, viewport);
  for (const [first, last] of seenRuns(rects, viewport)) {
    for (let rect = first; rect < last; rect += 1) {
      if (!place.take(rect)) {
        continue;
      }
      const { fromX, toX, fromY, toY, share } = place;
      const fill = palette.fill[rects.colour[rect] ?? 0] ?? 0;
      if (rect >= rects.backdrop && share < 1) {
        raster.shared.add(fromX, toX, fromY, toY, share, fill);
        continue;
      }
      const edge = palette.edge[rects.colour[rect] ?? 0] ?? 0;
      if (rects.striped[rect] === 1) {
        paintStripes(raster, fromX, toX, fromY, toY, fill, edge);
      } else {
        paintFill(raster, fromX, toX, fromY, toY, fill, edge);
      }
    }
  }
  raster.shared.blendInto(raster.pixels);
}

/** Notes for each pixel the last rectangle in it, for `rectAt`. */
export function paintIds(raster: Raster, rects: Rects, viewport: Viewport): void {
  const { width, ids } = raster;
  const place = new Placing(raster, rects, viewport);
  ids.fill(0);
  for (const [first, last] of seenRuns(rects, viewport)) {
    for (let rect = first; rect < last; rect += 1) {
      if (!place.take(rect)) {
        continue;
      }
      const { fromX, toX, fromY, toY } = place;
      for (let y = fromY; y < toY; y += 1) {
        const start = y * width;
        if (toX - fromX > FILL_FROM_PX) {
          ids.fill(rect + 1, start + fromX, start + toX);
        } else {
          for (let pixel = start + fromX; pixel < start + toX; pixel += 1) {
            ids[pixel] = rect + 1;
          }
        }
      }
    }
  }
}

function seenRuns(
  { extents, count }: Rects,
  { left, right }: Viewport,
): Iterable<readonly [first: number, last: number]> {
  return extents?.overlapping(left, right) ?? [[0, count]];
}

function paintFill(
  raster: Raster,
  fromX: number,
  toX: number,
  fromY: number,
  toY: number,
  fill: number,
  edge: number,
): void {
  const topEdge = toY - fromY >= EDGE_FROM_PX;
  const leftEdge = topEdge && toX - fromX >= EDGE_FROM_PX;
  for (let y = fromY; y < toY; y += 1) {
    const start = y * raster.width;
    raster.pixels.fill(topEdge && y === fromY ? edge : fill, start + fromX, start + toX);
    if (leftEdge) {
      raster.pixels[start + fromX] = edge;
    }
  }
}

function paintStripes(
  raster: Raster,
  fromX: number,
  toX: number,
  fromY: number,
  toY: number,
  fill: number,
  edge: number,
): void {
  for (let y = fromY; y < toY; y += 1) {
    for (let x = fromX; x < toX; x += 1) {
      const inStripe = (x + y) % STRIPE_PERIOD_PX < STRIPE_PX;
      raster.pixels[y * raster.width + x] = inStripe ? edge : fill;
    }
  }
}

/** The rectangle painted at a pixel, or undefined. */
export function rectAt(raster: Raster, x: number, y: number): number | undefined {
  if (x < 0 || y < 0 || x >= raster.width || y >= raster.height) {
    return undefined;
  }
  const id = raster.ids[Math.floor(y) * raster.width + Math.floor(x)] ?? 0;
  return id === 0 ? undefined : id - 1;
}
