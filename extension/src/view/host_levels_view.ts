import { formatBytes, formatTime } from "../base/format.ts";
import { fromPixel, type Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import { columnExtremes, columnRows } from "../model/decimation.ts";
import type { HostMemory } from "../model/host_memory.ts";
import { drawByteAxis, scaleUp } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { drawPeak } from "./level_marks.ts";
import { saveAndClip, type Drawing } from "./plot.ts";
import { fillBelow, LEVEL_DASHES_PX, strokeSteps } from "./step_lines.ts";
import { timePlot } from "./time_plot.ts";

const HEADROOM = 1.04;
const LINE_SLACK_PX = 2;
const OPTIONS = {
  label: "Pinned host memory over time. Arrow keys move the cursor.",
  heightPx: 70,
  topPx: 20,
};

/** Pinned host memory over time: reserved and allocated as areas, and what is active. */
export function hostLevelsView(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  let drawn: Scale | undefined;
  const draw = (drawing: Drawing, time: Scale): void => {
    const { timeline } = chart.host;
    const { events, lines } = timeline;
    const most = lines.reserved.largestIn(0, events.count);
    const bytes = scaleUp(drawing.area, Math.max(most, 1) * HEADROOM);
    drawByteAxis(drawing, bytes);
    drawLevels(drawing, chart.host, time, bytes);
    drawPeak(drawing, timeline, time, bytes);
    drawn = time;
  };
  const plot = timePlot(scope, parent, chart, OPTIONS, { draw });
  scope.listen(plot.host, "keydown", () => {
    const { value: timeNs } = chart.selection.cursorNs;
    if (timeNs !== undefined) {
      chart.say(linesAt(chart.host, timeNs, 1000).join(", "));
    }
  });
  chart.tooltip.attach(scope, plot.host, (x) => {
    const isInside = x >= plot.area.left && x <= plot.area.left + plot.area.width;
    return drawn && isInside
      ? linesAt(chart.host, fromPixel(drawn, x), (drawn.to - drawn.from) / plot.area.width)
      : undefined;
  });
}

function drawLevels(
  drawing: Drawing,
  { timeline: { events, lines } }: HostMemory,
  time: Scale,
  bytes: Scale,
): void {
  const { context, area, theme } = drawing;
  const ends = columnRows(events.timeNs, time.from, time.to, Math.round(area.width));
  const allocated = columnExtremes(lines.allocated, ends);
  saveAndClip(drawing, LINE_SLACK_PX);
  context.lineWidth = 1.5;
  for (const name of ["reserved", "allocated"] as const) {
    const extremes = columnExtremes(lines[name], ends);
    context.fillStyle = theme[`${name}Fill`];
    fillBelow(drawing, extremes.largest, bytes);
    context.strokeStyle = theme[name];
    strokeSteps(drawing, extremes, bytes);
  }
  context.strokeStyle = theme.active;
  context.setLineDash(LEVEL_DASHES_PX.active);
  strokeSteps(drawing, columnExtremes(lines.active, ends), bytes, allocated);
  context.restore();
}

/** The levels at a time, in words. */
function linesAt(host: HostMemory, timeNs: number, resolutionNs: number): string[] {
  const { allocated, active, reserved, requested } = host.levelsAt(timeNs);
  return [
    `${formatTime(timeNs, resolutionNs)}: ${formatBytes(allocated)} of pinned memory allocated`,
    `${formatBytes(active - allocated)} freed, waiting for copies`,
    `${formatBytes(reserved - active)} cached`,
    `${formatBytes(active - requested)} lost to rounding`,
  ];
}
