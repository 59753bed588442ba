import { formatBytes, formatShare, formatTime } from "../base/format.ts";
import { fromPixel, type Scale } from "../base/scale.ts";
import { bandsIn, stretchAt, type AllocationStack } from "../model/allocation_stack.ts";
import type { ChartContext } from "./chart_context.ts";
import type { PlotArea } from "./plot.ts";

/** A stack as it was drawn. */
export interface DrawnStack {
  readonly stack: AllocationStack;
  readonly area: PlotArea;
  readonly time: Scale;
  readonly bytes: Scale;
}

/** What a band is called in a chart. */
export function bandName(
  { places, blocks }: AllocationStack,
  band: number,
  { grouping, timeline }: ChartContext,
): string {
  const name = grouping.categories.value.all[places[band] ?? 0]?.short ?? "";
  const block = blocks?.[band];
  return block === undefined ? name : `${name} · ${formatBytes(timeline.blocks.size[block] ?? 0)}`;
}

/** The column and the band at a place of the plot; -1 where there is none. */
export function bandAt(
  { stack, area, bytes }: DrawnStack,
  x: number,
  y: number,
): { readonly column: number; readonly band: number } {
  const column = Math.floor(((x - area.left) / area.width) * stack.columns);
  const wanted = fromPixel(bytes, y);
  let level = 0;
  const bands = bandsIn(stack, stretchAt(stack, column));
  const band = bands.findIndex((size) => (level += size) > wanted);
  return { column, band: wanted < 0 ? -1 : band };
}

/** What is allocated in a pixel column, largest first, and what is at a place in it. */
export function stackLines(
  drawn: DrawnStack,
  chart: ChartContext,
  x: number,
  y: number,
): string[] | undefined {
  const { stack, time } = drawn;
  const { column, band } = bandAt(drawn, x, y);
  const row = stack.rows[stretchAt(stack, column)] ?? -1;
  if (row < 0) {
    return undefined;
  }
  const columnNs = (time.to - time.from) / stack.columns;
  const timeNs = Math.max(chart.timeline.events.timeNs[row] ?? 0, time.from + column * columnNs);
  const lines = breakdown(chart, row, timeNs, columnNs, stack.places[band]);
  return stack.blocks?.[band] === undefined
    ? lines
    : [...lines, `${bandName(stack, band, chart)}: click to select`];
}

/** The bytes of each category after an event, largest first, with a mark at one of them. */
export function breakdown(
  { grouping, timeline }: ChartContext,
  row: number,
  timeNs: number,
  resolutionNs: number,
  marked?: number,
): string[] {
  const total = timeline.lines.allocated.values[row] ?? 0;
  const parts = [...grouping.levels.after(row).entries()]
    .filter(([, bytes]) => bytes > 0)
    .sort(([, left], [, right]) => right - left)
    .map(([place, bytes]) => {
      const name = grouping.categories.value.all[place]?.short ?? "";
      const size = formatBytes(bytes).padStart(9, "\u2007");
      const share = formatShare(bytes / total).padStart(6, "\u2007");
      return `${size} ${share}  ${name}${place === marked ? " ◂" : ""}`;
    });
  return [`${formatTime(timeNs, resolutionNs)}: ${formatBytes(total)} allocated`, ...parts];
}
