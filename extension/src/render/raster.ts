import type { Extents } from "../base/extents.ts";
import { nearest, type PlacedRows } from "./placed_rows.ts";
import { colourSteps, SharedPixels, type ColourSteps } from "./shared_pixels.ts";

/** Pixels (0xAABBGGRR) and, for spans with ids, the id at each pixel plus one, or 0. */
export interface Raster {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint32Array<ArrayBuffer>;
  readonly ids: Int32Array<ArrayBuffer>;
  /** For rectangles smaller than a pixel; created when the first one is painted. */
  shared?: SharedPixels;
}

/** Rectangles in data space as columns, and their style. */
export interface Rects {
  readonly count: number;
  readonly left: ArrayLike<number>;
  readonly right: ArrayLike<number>;
  /** Their rows in a raster of the current height. */
  readonly rows: PlacedRows;
  /** The index in the palette. */
  readonly colour: ArrayLike<number>;
  readonly palette: Palette;
  /** Finds the runs of rectangles that may lie between two values of the horizontal axis. */
  readonly extents?: Extents;
  /** Whether a rectangle is striped instead of filled. */
  readonly isStriped: (rect: number) => boolean;
  /** Whether they are the background of others, and share no pixels. */
  readonly isBackdrop: boolean;
}

/** The part of the horizontal axis that fills the raster. */
export interface Viewport {
  readonly left: number;
  readonly right: number;
}

/** Fill and edge colours, 0xAABBGGRR. */
export interface Palette {
  readonly fill: ArrayLike<number>;
  readonly edge: ArrayLike<number>;
}

const EDGE_FROM_PX = 4;
const STRIPE_PERIOD_PX = 6;
const STRIPE_PX = 3;

export function createRaster(width: number, height: number): Raster {
  return {
    width,
    height,
    pixels: new Uint32Array(width * height),
    ids: new Int32Array(width * height),
  };
}

/** An empty raster; reuses the previous one if the size is the same, as a new one takes ms. */
export function clearedRaster(before: Raster, width: number, height: number): Raster {
  if (before.width !== width || before.height !== height) {
    return createRaster(width, height);
  }
  before.pixels.fill(0);
  before.ids.fill(0);
  return before;
}

/**
 * Paints layers of rectangles in order.
 *
 * Each rectangle is at least one pixel wide and high, so that it remains visible; those smaller
 * than a pixel are blended with the backdrop in proportion to their area.
 */
export function paintRects(raster: Raster, layers: readonly Rects[], viewport: Viewport): void {
  const shared = (raster.shared ??= new SharedPixels(raster.width, raster.height));
  for (const rects of layers) {
    const steps = colourSteps(rects.palette.fill);
    for (const [first, last] of seenRuns(rects, viewport)) {
      paintRun(raster, shared, steps, rects, viewport, first, last);
    }
  }
  shared.blendInto(raster.pixels);
}

function paintRun(
  raster: Raster,
  shared: SharedPixels,
  steps: ColourSteps,
  rects: Rects,
  viewport: Viewport,
  first: number,
  last: number,
): void {
  const { left, right, colour, palette, isBackdrop } = rects;
  const { fromY, toY, share } = rects.rows;
  const { width } = raster;
  const scale = width / (viewport.right - viewport.left);
  for (let rect = first; rect < last; rect += 1) {
    const from = ((left[rect] ?? 0) - viewport.left) * scale;
    const to = ((right[rect] ?? 0) - viewport.left) * scale;
    const bottom = toY[rect] ?? 0;
    if (to < 0 || from >= width || bottom === 0) {
      continue;
    }
    const fromX = nearest(from, 0, width - 1);
    const toX = nearest(to, fromX + 1, width);
    const top = fromY[rect] ?? 0;
    const part = (to - from < 1 ? to - from : 1) * (share[rect] ?? 1);
    const place = colour[rect] ?? 0;
    if (part < 1 && !isBackdrop) {
      shared.add(fromX, toX, top, bottom, part, steps, place);
      continue;
    }
    const fill = palette.fill[place] ?? 0;
    const edge = palette.edge[place] ?? 0;
    if (rects.isStriped(rect)) {
      paintStripes(raster, fromX, toX, top, bottom, fill, edge);
    } else {
      paintFill(raster, fromX, toX, top, bottom, fill, edge);
    }
  }
}

/** The last of some rectangles that is painted at a pixel, or undefined. */
export function findRect(
  rects: Rects,
  viewport: Viewport,
  width: number,
  x: number,
  y: number,
): number | undefined {
  const { left, right } = rects;
  const { fromY, toY } = rects.rows;
  const scale = width / (viewport.right - viewport.left);
  const row = Math.floor(y);
  const column = Math.floor(x);
  // A rectangle may extend by half a pixel beyond its position, and a short one by a whole pixel.
  const around = {
    left: Math.max(viewport.left + (column - 1) / scale, viewport.left),
    right: viewport.left + (column + 2) / scale,
  };
  let found: number | undefined;
  for (const [first, last] of seenRuns(rects, around)) {
    for (let rect = last - 1; rect >= first; rect -= 1) {
      if (row < (fromY[rect] ?? 0) || row >= (toY[rect] ?? 0)) {
        continue;
      }
      const from = ((left[rect] ?? 0) - viewport.left) * scale;
      const to = ((right[rect] ?? 0) - viewport.left) * scale;
      if (to >= 0 && from < width) {
        const fromX = nearest(from, 0, width - 1);
        if (column >= fromX && column < nearest(to, fromX + 1, width)) {
          found = rect;
          break;
        }
      }
    }
  }
  return found;
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

/** The id painted at a pixel, or undefined. */
export function idAt(raster: Raster, x: number, y: number): number | undefined {
  if (x < 0 || y < 0 || x >= raster.width || y >= raster.height) {
    return undefined;
  }
  const id = raster.ids[Math.floor(y) * raster.width + Math.floor(x)] ?? 0;
  return id === 0 ? undefined : id - 1;
}
