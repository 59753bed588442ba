import { KERNEL_SHADES, SPAN_KINDS, SpanKind } from "../model/span_kinds.ts";
import { COLOURED } from "../model/categories.ts";
import { luminance, mix, pixelOf, shade } from "../render/colour.ts";
import { Pattern, type LanePalette } from "../render/lane_raster.ts";
import type { Palette } from "../render/raster.ts";
import type { StackPalette } from "../render/stack_raster.ts";

/** Single colours by name, with the rest of the custom property `--gpuviz-...` of each. */
const COLOURS = {
  text: "text",
  muted: "muted",
  grid: "grid",
  background: "background",
  accent: "accent",
  alarm: "alarm",
  reserved: "reserved",
  reservedFill: "reserved-fill",
  allocated: "allocated",
  allocatedFill: "allocated-fill",
  active: "active",
  requested: "requested",
  used: "used",
  cached: "cached",
  cachedEdge: "cached-edge",
  split: "split",
  ground: "ground",
} as const;
type Colours = Readonly<Record<keyof typeof COLOURS, string>>;

/** The colours in force where an element stands. */
export interface Theme extends Colours {
  /** The kinds of spans, then the shades of kernels. */
  readonly spans: readonly string[];
  readonly categories: readonly string[];
  /** From small to large, or from short to long. */
  readonly order: readonly string[];
}

const CATEGORY_COUNT = COLOURED + 1;
const STEP_COUNT = 7;
const PHASE_COUNT = SPAN_KINDS.length - SpanKind.forward;

export function themeOf(host: HTMLElement): Theme {
  const style = getComputedStyle(host);
  const colour = (name: string): string => style.getPropertyValue(`--gpuviz-${name}`).trim();
  const several = (name: string, length: number): string[] =>
    Array.from({ length }, (_, index) => colour(`${name}-${index}`));
  const named = Object.entries(COLOURS).map(([name, property]) => [name, colour(property)]);
  const categories = several("category", CATEGORY_COUNT);
  const kinds = several("kind", SpanKind.forward);
  return {
    ...(Object.fromEntries(named) as Colours),
    // The parts of a training step have colours of categories.
    spans: [...kinds, ...categories.slice(0, PHASE_COUNT), ...several("kernel", KERNEL_SHADES)],
    categories,
    order: several("order", STEP_COUNT),
  };
}

/** The place of cached space in the palette of blocks; the categories come before it. */
export const CACHED_COLOUR = CATEGORY_COUNT;
/** The place of free space beside blocks, which cannot be given back. */
export const SPLIT_COLOUR = CATEGORY_COUNT + 1;

export function blockPalette(theme: Theme, isOrdered = false): Palette {
  const unused = Array<string>(CATEGORY_COUNT - STEP_COUNT).fill(theme.cached);
  const groups = isOrdered ? [...theme.order, ...unused] : theme.categories;
  const fill = [...groups, theme.cached, theme.split].map(pixelOf);
  const towards = pixelOf(theme.background) > pixelOf("#808080") ? -0.35 : -0.5;
  const edge = fill.slice(0, CACHED_COLOUR).map((pixel) => shade(pixel, towards));
  const freeEdge = pixelOf(theme.cachedEdge);
  return { fill, edge: [...edge, freeEdge, freeEdge] };
}

/** How much of its colour a band keeps where it is not allocated all of a pixel's time. */
const LIGHT_SHARE = 0.45;

/** The colours of the categories, and their lighter tones. */
export function stackPalette(theme: Theme, isOrdered: boolean): StackPalette {
  const palette = blockPalette(theme, isOrdered);
  const ground = pixelOf(theme.background);
  const light = Array.from(palette.fill, (pixel) => mix(pixel, ground, 1 - LIGHT_SHARE));
  return { ...palette, light };
}

const PATTERNS: Readonly<Record<number, number>> = {
  [SpanKind.graph]: Pattern.crossed,
  [SpanKind.hostToDevice]: Pattern.rising,
  [SpanKind.deviceToHost]: Pattern.falling,
  [SpanKind.deviceToDevice]: Pattern.lying,
  [SpanKind.otherCopy]: Pattern.dotted,
  [SpanKind.memset]: Pattern.upright,
  [SpanKind.wait]: Pattern.dotted,
  [SpanKind.idle]: Pattern.hatched,
  [SpanKind.overhead]: Pattern.crossed,
  [SpanKind.hostPause]: Pattern.dotted,
  [SpanKind.collection]: Pattern.upright,
};

/**
 * The colours of spans by kind, each with a sign of its own where it could be mistaken.
 *
 * Quiet idle time is that of one stream of several, in which others may be busy.
 */
export function lanePalette(theme: Theme, hasQuietIdle = false): LanePalette {
  const fill = theme.spans.map(pixelOf);
  const hatch = hasQuietIdle ? pixelOf(theme.split) : (fill[SpanKind.idle] ?? 0);
  const edge = fill.map((pixel) => shade(pixel, luminance(pixel) > 0.35 ? -0.22 : 0.25));
  return {
    fill: fill.with(SpanKind.idle, pixelOf(theme.ground)),
    edge: edge.with(SpanKind.idle, hatch),
    pattern: theme.spans.map((_, kind) => PATTERNS[kind] ?? Pattern.plain),
  };
}

/** Black or white, whichever is read better on a colour. */
export function inkOn(hex: string): string {
  return inkOnPixel(pixelOf(hex));
}

export function inkOnPixel(pixel: number): string {
  return luminance(pixel) > AS_FAR_FROM_BLACK_AS_WHITE ? "#000000" : "#ffffff";
}

/** sqrt(1.05 * 0.05) - 0.05: both then have a contrast of 4.58. */
const AS_FAR_FROM_BLACK_AS_WHITE = 0.179;
