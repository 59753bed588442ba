import { formatBytes, formatDuration, formatShare, formatTime } from "../base/format.ts";
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

/** What is allocated at the cursor, largest first, and what is at a place there. */
export function stackLines(
  drawn: DrawnStack,
  chart: ChartContext,
  x: number,
  y: number,
): string[] | undefined {
  const { stack } = drawn;
  const { column, band } = bandAt(drawn, x, y);
  if ((stack.rows[stretchAt(stack, column)] ?? -1) < 0) {
    return undefined;
  }
  const lines = breakdown(chart, stack.places[band]);
  return stack.blocks?.[band] === undefined
    ? lines
    : [...lines, `${bandName(stack, band, chart)}: click to select`];
}

/** The bytes of each category in the state that is read out, largest first; one may be marked. */
export function breakdown(chart: ChartContext, marked?: number): string[] {
  const { grouping, timeline, selection } = chart;
  const { row, timeNs, withinNs } = selection.shownState(timeline);
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
  const time = formatTime(timeNs, selection.resolutionNs);
  const [most, within] =
    withinNs === 0 ? ["", ""] : ["at most ", `, within ${formatDuration(withinNs)}`];
  return [`${time}: ${most}${formatBytes(total)} allocated${within}`, ...parts];
}
