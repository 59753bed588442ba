import { toPixel, type Scale } from "../base/scale.ts";
import { COLOURED, type Categories } from "../model/categories.ts";
import { RectKind, type MapRects } from "../model/map_rects.ts";
import type { Rects } from "../render/raster.ts";
import { cutText } from "./lane_frames.ts";
import type { Drawing } from "./plot.ts";
import { inkOn } from "./theme.ts";

const MOST_RECTS = 40_000;
const NARROWEST_PX = 56;
const LOWEST_PX = 14;
const PADDING_PX = 4;

/** What groups large blocks belong to, so that no colour has to be told from another. */
export function drawBlockNames(
  drawing: Drawing,
  rects: MapRects,
  { extents }: Rects,
  { labels, ofBlock, isOrdered }: Categories,
  time: Scale,
  bytes: Scale,
): void {
  const { context, area, theme } = drawing;
  const runs = [...(extents?.overlapping(time.from, time.to) ?? [])];
  if (runs.reduce((sum, [first, last]) => sum + last - first, 0) > MOST_RECTS) {
    return;
  }
  const colours = isOrdered ? theme.order : theme.categories;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const [first, last] of runs) {
    for (let rect = first; rect < last; rect += 1) {
      const left = Math.max(toPixel(time, rects.fromNs[rect] ?? 0), area.left);
      const width = Math.min(toPixel(time, rects.toNs[rect] ?? 0), area.left + area.width) - left;
      const top = toPixel(bytes, rects.toByte[rect] ?? 0);
      const height = toPixel(bytes, rects.fromByte[rect] ?? 0) - top;
      if (width >= NARROWEST_PX && height >= LOWEST_PX && rects.kind[rect] === RectKind.block) {
        const group = ofBlock[rects.owner[rect] ?? 0] ?? COLOURED;
        const label = labels[group] ?? labels.at(-1) ?? "";
        context.fillStyle = inkOn(colours[group] ?? theme.cached);
        const name = fittingName(context, label, width - 2 * PADDING_PX);
        context.fillText(name, left + PADDING_PX, top + height / 2);
      }
    }
  }
}

/** A line of code is known by its number where its file does not fit. */
function fittingName(context: CanvasRenderingContext2D, label: string, widthPx: number): string {
  const name = label.replace(/^.*\//, "").replace("up to", "≤").replace("more than", ">");
  const [inFile] = /:\d+.*$/.exec(name) ?? [];
  const isTooLong = context.measureText(name).width > widthPx;
  return cutText(context, isTooLong ? (inFile ?? name) : name, widthPx);
}
