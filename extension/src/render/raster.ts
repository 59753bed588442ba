import { SharedPixels } from "./shared_pixels.ts";

/** Pixels (0xAABBGGRR) and for each pixel the rectangle in it plus one, or 0. */
export interface Raster {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint32Array<ArrayBuffer>;
  readonly ids: Int32Array<ArrayBuffer>;
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
  const xScale = raster.width / (viewport.right - viewport.left);
  const yScale = raster.height / (viewport.bottom - viewport.top);
  const shared = new SharedPixels(raster.width, raster.height);
  for (let rect = 0; rect < rects.count; rect += 1) {
    const left = ((rects.left[rect] ?? 0) - viewport.left) * xScale;
    const right = ((rects.right[rect] ?? 0) - viewport.left) * xScale;
    const top = ((rects.top[rect] ?? 0) - viewport.top) * yScale;
    const bottom = ((rects.bottom[rect] ?? 0) - viewport.top) * yScale;
    if (right < 0 || left >= raster.width || bottom < 0 || top >= raster.height) {
      continue;
    }
    const fromX = clamp(Math.round(left), 0, raster.width - 1);
    const fromY = clamp(Math.round(top), 0, raster.height - 1);
    const toX = clamp(Math.round(right), fromX + 1, raster.width);
    const toY = clamp(Math.round(bottom), fromY + 1, raster.height);
    const colour = rects.colour[rect] ?? 0;
    const fill = palette.fill[colour] ?? 0;
    const edge = palette.edge[colour] ?? 0;
    const share = Math.min(right - left, 1) * Math.min(bottom - top, 1);
    if (rect >= rects.backdrop && share < 1) {
      shared.add(fromX, toX, fromY, toY, share, fill);
    } else if (rects.striped[rect] === 1) {
      paintStripes(raster, fromX, toX, fromY, toY, fill, edge);
    } else {
      paintFill(raster, fromX, toX, fromY, toY, fill, edge);
    }
    for (let y = fromY; y < toY; y += 1) {
      raster.ids.fill(rect + 1, y * raster.width + fromX, y * raster.width + toX);
    }
  }
  shared.blendInto(raster.pixels);
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

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
