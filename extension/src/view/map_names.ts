import { toPixel, type Scale } from "../base/scale.ts";
import { categoryOf, type Categories } from "../model/categories.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { setText } from "./axes.ts";
import { cutText } from "./lane_frames.ts";
import type { Drawing, PlotArea } from "./plot.ts";
import { inkOn } from "./theme.ts";

const MOST_BLOCKS = 40_000;
const NARROWEST_PX = 32;
const LOWEST_PX = 10;
const PADDING_PX = 4;

/** What groups large blocks belong to, so that no colour has to be told from another. */
export function drawBlockNames(
  drawing: Drawing,
  { blocks, layout, regions }: DeviceTimeline,
  categories: Categories,
  time: Scale,
  bytes: Scale,
): void {
  const { area } = drawing;
  const runs = [...blocks.extents.overlapping(time.from, time.to)];
  if (runs.reduce((sum, [first, last]) => sum + last - first, 0) > MOST_BLOCKS) {
    return;
  }
  const { fromNs, inUseUntilNs, address, size } = blocks;
  const right = area.left + area.width;
  const drawName = blockNames(drawing, categories);
  for (const [first, last] of runs) {
    for (let block = first; block < last; block += 1) {
      const left = Math.max(toPixel(time, fromNs[block] ?? 0), area.left);
      const width = Math.min(toPixel(time, inUseUntilNs[block] ?? 0), right) - left;
      const from = (address[block] ?? 0) + (layout.shifts[regions[block] ?? 0] ?? 0);
      const bottom = toPixel(bytes, from);
      const height = bottom - toPixel(bytes, from + (size[block] ?? 0));
      drawName(block, { left, top: bottom - height, width, height });
    }
  }
}

/** Draws what a block belongs to into its rectangle, if that is large enough. */
export function blockNames(
  { context, theme }: Drawing,
  categories: Categories,
): (block: number, area: PlotArea) => void {
  const colours = categories.isOrdered ? theme.order : theme.categories;
  setText(context, "left", "10px");
  return (block, { left, top, width, height }) => {
    if (width >= NARROWEST_PX && height >= LOWEST_PX) {
      const place = categoryOf(categories, block);
      const label = categories.all[place]?.short ?? "";
      context.fillStyle = inkOn(colours[place] ?? theme.cached);
      const name = fittingName(context, label, width - 2 * PADDING_PX);
      context.fillText(name, left + PADDING_PX, top + height / 2);
    }
  };
}

/** A name without its size or its file where these do not fit; a line is known by its number. */
export function fittingName(
  context: CanvasRenderingContext2D,
  label: string,
  widthPx: number,
): string {
  const name = label.replace("up to", "≤").replace("more than", ">");
  const short = name.replace(/ · .*/, "");
  const [inFile = short, line = short] = /(:\d+).*$/.exec(short) ?? [];
  const fits = (text: string): boolean => context.measureText(text).width <= widthPx;
  return (
    [name, short, inFile, line].find(fits) ??
    (line === short ? cutText(context, short, widthPx) : "")
  );
}
