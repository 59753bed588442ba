import type { Raster } from "./raster.ts";

/** A row of spans to paint, by pixel column. */
export interface LaneStrip {
  readonly fromY: number;
  readonly toY: number;
  /** The covered share of each column, from 0 to 1. */
  readonly share: ArrayLike<number>;
  /** The span shown in each column, or -1. */
  readonly span: ArrayLike<number>;
  /** The place of a span in the palette. */
  readonly placeOf: (span: number) => number;
  /** The id of the row's first span. */
  readonly firstId: number;
}

/** A pattern in the fill that distinguishes kinds without colour. */
export const Pattern = {
  plain: 0,
  rising: 1,
  falling: 2,
  lying: 3,
  upright: 4,
  dotted: 5,
  crossed: 6,
  hatched: 7,
} as const;

/** Colours 0xAABBGGRR and a Pattern by place; patterns have the colour of the edge. */
export interface LanePalette {
  readonly fill: ArrayLike<number>;
  readonly edge: ArrayLike<number>;
  readonly pattern: ArrayLike<number>;
}

const EDGE_FROM_PX = 4;
const LEAST_HEIGHT_PX = 2;
const FAINT_ALPHA = 0x48;

/**
 * Paints a row of spans.
 *
 * A partly covered column is filled from below in proportion to its share, on a faint background,
 * so that a run of short spans shows how busy the row was.
 */
export function paintLane(raster: Raster, strip: LaneStrip, palette: LanePalette): void {
  const { fromY, toY, share, span, placeOf } = strip;
  for (let x = 0; x < raster.width; x += 1) {
    const shown = span[x] ?? -1;
    if (shown < 0) {
      continue;
    }
    const place = placeOf(shown);
    const fill = palette.fill[place] ?? 0;
    const edge = palette.edge[place] ?? 0;
    const pattern = palette.pattern[place] ?? Pattern.plain;
    const part = Math.min(share[x] ?? 0, 1);
    const heightPx = Math.max(Math.round(part * (toY - fromY)), LEAST_HEIGHT_PX);
    const top = Math.max(toY - heightPx, fromY);
    const isBegin = part === 1 && span[x - 1] !== shown && span[x + EDGE_FROM_PX - 1] === shown;
    const faint = ((fill & 0xffffff) | (FAINT_ALPHA << 24)) >>> 0;
    const id = strip.firstId + shown + 1;
    fillColumn(raster, x, fromY, top, faint, id);
    fillColumn(raster, x, top, toY, isBegin ? edge : fill, id);
    if (pattern !== Pattern.plain && !isBegin) {
      markColumn(raster, x, top, toY, edge, pattern);
    }
  }
}

function fillColumn(
  { width, pixels, ids }: Raster,
  x: number,
  fromY: number,
  toY: number,
  colour: number,
  id: number,
): void {
  const end = toY * width + x;
  for (let pixel = fromY * width + x; pixel < end; pixel += width) {
    pixels[pixel] = colour;
    ids[pixel] = id;
  }
}

function markColumn(
  { width, pixels }: Raster,
  x: number,
  fromY: number,
  toY: number,
  colour: number,
  pattern: number,
): void {
  for (let y = fromY; y < toY; y += 1) {
    if (isMarked(pattern, x, y)) {
      pixels[y * width + x] = colour;
    }
  }
}

/** Whether the pattern of a kind covers a pixel. */
function isMarked(pattern: number, x: number, y: number): boolean {
  switch (pattern) {
    case Pattern.rising:
      return (x + y) % 6 < 2;
    case Pattern.falling:
      return (x + 600_000 - y) % 6 < 2;
    case Pattern.lying:
      return y % 4 === 0;
    case Pattern.upright:
      return x % 4 === 0;
    case Pattern.dotted:
      return x % 4 < 2 && y % 4 < 2;
    case Pattern.crossed:
      return (x + y) % 7 === 0 || (x + 700_000 - y) % 7 === 0;
    case Pattern.hatched:
      return (x + y) % 9 === 0;
    default:
      return false;
  }
}
