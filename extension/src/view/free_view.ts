import { formatBytes, formatTime } from "../base/format.ts";
import { nextTask } from "../base/next_task.ts";
import type { Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import { columnExtremes, columnRows } from "../model/decimation.ts";
import { FreeLevels } from "../model/free_levels.ts";
import { drawByteAxis, scaleUp } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { element, legendEntry } from "./dom.ts";
import { saveAndClip, type Drawing } from "./plot.ts";
import { fillBelow, strokeSteps } from "./step_lines.ts";
import { timePlot } from "./time_plot.ts";

const HEADROOM = 1.08;
/** Events taken in before the page draws again. */
const AT_ONCE = 20_000;
const OPTIONS = {
  label: "Free bytes in segments and the largest free block over time.",
  heightPx: 118,
  topPx: 10,
  hasAxis: true,
};

/** Free bytes over time, and the largest free block: what lies between them is in pieces. */
export function freeView(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const legend = element("ul", "gpuviz-legend");
  legend.append(
    legendEntry("gpuviz-key--cached", "free bytes in segments"),
    legendEntry("gpuviz-key--largest", "of them, the largest free block"),
  );
  scope.append(parent, legend);
  let levels = new FreeLevels(chart.timeline);
  let isReading = false;
  let isShown = true;
  const plot = timePlot(scope, parent, chart, OPTIONS, {
    draw: (drawing, time) => drawFree(drawing, time, chart, levels),
  });
  const read = async (): Promise<void> => {
    if (levels.timeline !== chart.timeline) {
      levels = new FreeLevels(chart.timeline);
    }
    if (isReading) {
      return;
    }
    isReading = true;
    while (isShown && levels.extend(AT_ONCE)) {
      plot.redraw();
      await nextTask();
    }
    isReading = false;
    plot.redraw();
  };
  scope.follow(() => void read(), chart.revision);
  scope.defer(() => {
    isShown = false;
  });
  chart.tooltip.attach(scope, plot.host, () => {
    const { row, timeNs } = chart.selection.shownState(chart.timeline);
    const [free, largest] = [levels.free, levels.largest].map(({ values }) => values[row] ?? 0);
    return [
      `${formatTime(timeNs, chart.selection.resolutionNs)}: ${formatBytes(free ?? 0)} free in segments`,
      `the largest free block has ${formatBytes(largest ?? 0)}`,
    ];
  });
}

/** Both lines, with each level that occurs in a pixel column; the second where it differs. */
function drawFree(
  drawing: Drawing,
  time: Scale,
  { timeline }: ChartContext,
  levels: FreeLevels,
): void {
  const { context, area, theme, pixelRatio } = drawing;
  const { timeNs, count } = timeline.events;
  const bytes = scaleUp(area, Math.max(levels.free.largestIn(0, count), 1) * HEADROOM);
  drawByteAxis(drawing, bytes);
  const ends = columnRows(timeNs, time.from, time.to, Math.round(area.width * pixelRatio));
  const free = columnExtremes(levels.free, ends);
  const largest = columnExtremes(levels.largest, ends);
  saveAndClip(drawing);
  context.lineWidth = 1.5;
  context.fillStyle = theme.cached;
  context.strokeStyle = theme.reserved;
  fillBelow(drawing, free.largest, bytes);
  strokeSteps(drawing, free, bytes);
  context.fillStyle = theme.allocatedFill;
  context.strokeStyle = theme.allocated;
  fillBelow(drawing, largest.largest, bytes);
  strokeSteps(drawing, largest, bytes, free);
  context.restore();
}
