import type { Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import { allocationStack } from "../model/allocation_stack.ts";
import {
  columnExtremes,
  columnLargest,
  columnRows,
  type ColumnExtremes,
} from "../model/decimation.ts";
import type { Indices } from "../model/events.ts";
import type { LevelName } from "../model/levels.ts";
import { describeMark } from "../model/marks.ts";
import { createRaster } from "../render/raster.ts";
import { paintStack } from "../render/stack_raster.ts";
import { drawByteAxis, scaleUp } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { paintImage, rasterFor } from "./image.ts";
import { drawMarks, drawPeak, markNear } from "./level_marks.ts";
import { saveAndClip, type Drawing } from "./plot.ts";
import { bandAt, bandName, breakdown, stackLines, type DrawnStack } from "./stack_details.ts";
import { drawStackNames } from "./stack_names.ts";
import { fillBelow, LEVEL_DASHES_PX, strokeSteps, strokeUsed } from "./step_lines.ts";
import { stackPalette } from "./theme.ts";
import { timePlot } from "./time_plot.ts";

const HEADROOM = 1.04;
/** How far a line may be drawn beyond the top and bottom of the plot area. */
const LINE_SLACK_PX = 2;
const OPTIONS = {
  label: "Memory over time. Arrow keys move the cursor, Enter chooses the moment.",
  heightPx: 228,
  topPx: 26,
};

/** Memory over time: what is allocated, in bands of the colours of blocks, and other levels. */
export function levelsView(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { grouping, selection, shownLevels } = chart;
  let raster = createRaster(1, 1);
  let drawn: DrawnStack | undefined;
  const draw = (drawing: Drawing, time: Scale): void => {
    const { timeline } = chart;
    const { area, theme } = drawing;
    const bytes = scaleUp(
      area,
      Math.max(mostBytes(chart), chart.beside === undefined ? 0 : mostBytes(chart.beside)) *
        HEADROOM,
    );
    drawByteAxis(drawing, bytes);
    raster = rasterFor(drawing, raster);
    selection.columns = raster.width;
    const ends = columnRows(timeline.events.timeNs, time.from, time.to, raster.width);
    drawReserved(drawing, chart, ends, bytes);
    const categories = grouping.categories.value;
    const stack = allocationStack(timeline, categories, grouping.levels, time, ends);
    const { blocks } = selection.highlighted.value;
    const palette = stackPalette(theme, categories.isOrdered);
    const lit = stack.blocks?.map((block) => blocks.has(block)) ?? [];
    const { fill, light } = palette;
    const shown = (band: number): ArrayLike<number> =>
      lit.includes(true) && lit[band] !== true ? light : fill;
    const colours = Array.from(stack.places, (place, band) => shown(band)[place] ?? 0);
    paintStack(raster, stack, raster.height / bytes.to, colours, palette);
    paintImage(drawing, raster);
    drawStackNames(drawing, stack, bytes, colours, (band) => bandName(stack, band, chart));
    drawLines(drawing, chart, ends, time, bytes);
    drawn = { stack, area, time, bytes };
  };
  const plot = timePlot(scope, parent, chart, OPTIONS, {
    draw,
    drawLabels: (drawing, time) => {
      if (drawn !== undefined) {
        drawPeak(drawing, chart.timeline, time, drawn.bytes);
      }
      drawMarks(drawing, chart.marks, time);
    },
    pick: (x, y) => {
      const block = drawn?.stack.blocks?.[bandAt(drawn, x, y).band];
      return block === undefined ? undefined : { kind: "block", block };
    },
  });
  scope.watch(() => plot.redraw(), shownLevels, grouping.categories, selection.highlighted);
  scope.listen(plot.host, "keydown", () => {
    if (selection.cursorNs.value !== undefined) {
      chart.say(breakdown(chart).join(", "));
    }
  });
  chart.tooltip.attach(scope, plot.host, (x, y) => {
    const mark = drawn && y < drawn.area.top ? markNear(chart.marks, drawn.time, x) : undefined;
    return mark === undefined
      ? drawn && stackLines(drawn, chart, x, y)
      : describeMark(mark, chart.timeline, chart.stacks);
  });
}

/** The most bytes of what is drawn, at any time. */
function mostBytes({ timeline, shownLevels, used }: ChartContext): number {
  const { reserved, active } = timeline.lines;
  const { count } = timeline.events;
  const samples = shownLevels.value.has("used") ? used?.bytes : undefined;
  const mostUsed = samples?.reduce((high, bytes) => Math.max(high, bytes), 0) ?? 0;
  return Math.max(reserved.largestIn(0, count), active.largestIn(0, count), mostUsed, 1);
}

function drawReserved(
  drawing: Drawing,
  { timeline }: ChartContext,
  ends: Indices,
  bytes: Scale,
): void {
  const { context, theme } = drawing;
  const extremes = columnExtremes(timeline.lines.reserved, ends);
  saveAndClip(drawing, LINE_SLACK_PX);
  context.fillStyle = theme.reservedFill;
  fillBelow(drawing, extremes.largest, bytes);
  context.strokeStyle = theme.reserved;
  context.lineWidth = 1.5;
  strokeSteps(drawing, extremes, bytes);
  context.restore();
}

/** The levels that are switched on, where they differ from what is allocated. */
function drawLines(
  drawing: Drawing,
  { timeline, shownLevels, used }: ChartContext,
  ends: Indices,
  time: Scale,
  bytes: Scale,
): void {
  const { context, theme } = drawing;
  // Dashes that went up and down would fill a column.
  const highest = (name: LevelName): ColumnExtremes => {
    const largest = columnLargest(timeline.lines[name], ends);
    return { smallest: largest, largest, last: largest };
  };
  saveAndClip(drawing, LINE_SLACK_PX);
  context.lineWidth = 1.5;
  for (const name of shownLevels.value) {
    context.strokeStyle = theme[name];
    context.setLineDash(LEVEL_DASHES_PX[name]);
    if (name !== "used") {
      strokeSteps(drawing, highest(name), bytes, highest("allocated"));
    } else if (used !== undefined) {
      strokeUsed(drawing, used, time, bytes);
    }
  }
  context.restore();
}
