import type { Scale } from "../base/scale.ts";
import { drawByteAxis } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { drawOutOfMemory, drawPeak } from "./level_marks.ts";
import { TIME_MARGINS_PX } from "./margins.ts";
import type { Drawing, Plot } from "./plot.ts";
import { drawLevels } from "./step_lines.ts";
import { timePlot } from "./time_plot.ts";

const HEADROOM = 1.08;
const OPTIONS = {
  label: "Memory levels over time. Arrow keys move the cursor, Enter chooses the moment.",
  heightPx: 310,
  marginsPx: { ...TIME_MARGINS_PX, top: 40, bottom: 42 },
};

/** The totals over time. */
export function levelsView(parent: HTMLElement, chart: ChartContext): Plot {
  const draw = (drawing: Drawing, time: Scale): void => {
    const { area } = drawing;
    const { timeline } = chart;
    const { reserved, active } = timeline.lines;
    const count = timeline.events.count;
    const highest = Math.max(reserved.largestIn(0, count), active.largestIn(0, count), 1);
    const bytes = {
      from: 0,
      to: highest * HEADROOM,
      fromPx: area.top + area.height,
      toPx: area.top,
    };
    drawByteAxis(drawing, bytes, "bytes on the device");
    drawLevels(drawing, timeline, time, bytes);
    chart.bands.drawNames(drawing, time);
    drawPeak(drawing, timeline, time, bytes);
    drawOutOfMemory(drawing, timeline, time);
  };
  return timePlot(parent, chart, OPTIONS, { draw });
}
