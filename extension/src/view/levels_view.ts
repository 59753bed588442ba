import { formatBytes, formatTime } from "../base/format.ts";
import type { Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import { describeMark } from "../model/marks.ts";
import { drawByteAxis, scaleUp } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { drawMarks, drawPeak, markNear } from "./level_marks.ts";
import type { Drawing } from "./plot.ts";
import { drawLevels, drawUsed } from "./step_lines.ts";
import { timePlot } from "./time_plot.ts";

const HEADROOM = 1.08;
const OPTIONS = {
  label: "Memory levels over time. Arrow keys move the cursor, Enter chooses the moment.",
  heightPx: 228,
  topPx: 26,
};

/** The totals over time. */
export function levelsView(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  let shown: Scale | undefined;
  const draw = (drawing: Drawing, time: Scale): void => {
    const { timeline } = chart;
    const { reserved, active } = timeline.lines;
    const count = timeline.events.count;
    const used = chart.showsUsed.value ? chart.used : undefined;
    const mostUsed = used?.bytes.reduce((high, bytes) => Math.max(high, bytes), 0) ?? 0;
    const most = Math.max(reserved.largestIn(0, count), active.largestIn(0, count), mostUsed, 1);
    const bytes = scaleUp(drawing.area, most * HEADROOM);
    drawByteAxis(drawing, bytes);
    drawLevels(drawing, timeline, time, bytes);
    if (used !== undefined) {
      drawUsed(drawing, used, time, bytes);
    }
    drawPeak(drawing, timeline, time, bytes);
    drawMarks(drawing, chart.marks, time);
    shown = time;
  };
  const plot = timePlot(scope, parent, chart, OPTIONS, { draw });
  scope.watch(() => plot.redraw(), chart.showsUsed);
  scope.listen(plot.host, "keydown", () => {
    const { cursorNs } = chart.selection;
    if (cursorNs.value !== undefined) {
      const { timeline } = chart;
      const bytes = timeline.lines.allocated.values[timeline.rowAt(cursorNs.value)] ?? 0;
      chart.say(`${formatTime(cursorNs.value, 1000)}: ${formatBytes(bytes)} allocated`);
    }
  });
  chart.tooltip.attach(scope, plot.host, (x) => {
    const mark = shown && markNear(chart.marks, shown, x);
    return mark && describeMark(mark, chart.timeline, chart.stacks);
  });
}
