import { formatBytes, formatTime } from "../base/format.ts";
import type { Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import { countAtMost } from "../base/search.ts";
import { columnExtremes, columnRows } from "../model/decimation.ts";
import { FreeLevels } from "../model/free_levels.ts";
import { drawByteAxis, scaleUp } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { element, legendEntry } from "./dom.ts";
import { saveAndClip, type Drawing } from "./plot.ts";
import { fillBelow, strokeSteps } from "./step_lines.ts";
import { timePlot } from "./time_plot.ts";

const HEADROOM = 1.08;
const OPTIONS = {
  label: "Free bytes in segments and the largest free block over time.",
  heightPx: 118,
  topPx: 10,
  hasAxis: true,
};

/** Free bytes over time, and the largest free block: what lies between them is in pieces. */
export function freeView(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const root = element("div", "gpuviz-free");
  const legend = element("ul", "gpuviz-legend");
  legend.append(
    legendEntry("gpuviz-key--cached", "free bytes in segments"),
    legendEntry("gpuviz-key--largest", "of them, the largest free block"),
  );
  root.append(legend);
  scope.append(parent, root);
  let { contents } = chart;
  let levels = new FreeLevels();
  const plot = timePlot(scope, root, chart, OPTIONS, {
    draw: (drawing, time) => drawFree(drawing, time, chart, levels),
  });
  scope.follow(() => {
    if (contents !== chart.contents) {
      ({ contents } = chart);
      levels = new FreeLevels();
    }
    levels.extend(chart.gpu.freeChanges, chart.device, chart.timeline);
    plot.redraw();
  }, chart.revision);
  chart.tooltip.attach(scope, plot.host, () => {
    const { row, timeNs } = chart.selection.shownState(chart.timeline);
    const [free, largest] = [levels.free.values[row], levels.largest.values[row]];
    const time = formatTime(timeNs, chart.selection.resolutionNs);
    return free === undefined || largest === undefined
      ? [`${time}: not known yet`]
      : [
          `${time}: ${formatBytes(free)} free in segments`,
          `the largest free block has ${formatBytes(largest)}`,
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
  const { timeNs } = timeline.events;
  const bytes = scaleUp(area, Math.max(levels.free.largestIn(0, levels.known), 1) * HEADROOM);
  drawByteAxis(drawing, bytes);
  const all = columnRows(timeNs, time.from, time.to, Math.round(area.width * pixelRatio));
  const ends = all.subarray(0, Math.max(countAtMost(all, levels.known), 1));
  const width = (area.width * (ends.length - 1)) / (all.length - 1);
  const known = { ...drawing, area: { ...area, width } };
  const free = columnExtremes(levels.free, ends);
  const largest = columnExtremes(levels.largest, ends);
  saveAndClip(drawing);
  context.lineWidth = 1.5;
  context.fillStyle = theme.cached;
  context.strokeStyle = theme.reserved;
  fillBelow(known, free.largest, bytes);
  strokeSteps(known, free, bytes);
  context.fillStyle = theme.allocatedFill;
  context.strokeStyle = theme.allocated;
  fillBelow(known, largest.largest, bytes);
  strokeSteps(known, largest, bytes, free);
  context.restore();
}
