import { toPixel, type Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import { fragmentationSeries, type FreeMoment } from "../model/fragmentation.ts";
import { drawByteAxis, scaleUp } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { element, legendEntry } from "./dom.ts";
import { saveAndClip, type Drawing } from "./plot.ts";
import { timePlot } from "./time_plot.ts";

const MOMENTS = 300;
const HEADROOM = 1.08;
const SETTLED_MS = 150;
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
  const seriesOf = (): FreeMoment[] => {
    const { fromNs, toNs } = chart.selection.window.range.value;
    return fragmentationSeries(chart.timeline, fromNs, toNs, MOMENTS);
  };
  let series = seriesOf();
  const plot = timePlot(scope, parent, chart, OPTIONS, {
    draw: (drawing, time) => drawFree(drawing, time, series, chart.timeline.endNs),
  });
  let settling: number | undefined;
  const refresh = (): void => {
    window.clearTimeout(settling);
    settling = window.setTimeout(() => {
      series = seriesOf();
      plot.redraw();
    }, SETTLED_MS);
  };
  scope.watch(refresh, chart.selection.window.range);
  scope.defer(() => window.clearTimeout(settling));
}

function drawFree(
  drawing: Drawing,
  time: Scale,
  series: readonly FreeMoment[],
  endNs: number,
): void {
  const { context, theme } = drawing;
  const highest = series.reduce((high, { free }) => Math.max(high, free), 1);
  const bytes = scaleUp(drawing.area, highest * HEADROOM);
  drawByteAxis(drawing, bytes);
  saveAndClip(drawing);
  for (const [name, fill, line] of [
    ["free", theme.cached, theme.reserved],
    ["largestFree", theme.allocatedFill, theme.allocated],
  ] as const) {
    const path = new Path2D();
    series.forEach((moment, index) => {
      const y = toPixel(bytes, moment[name]);
      path.lineTo(toPixel(time, moment.timeNs), y);
      path.lineTo(toPixel(time, series[index + 1]?.timeNs ?? endNs), y);
    });
    context.fillStyle = fill;
    context.strokeStyle = line;
    context.lineWidth = 1.5;
    context.stroke(path);
    path.lineTo(toPixel(time, endNs), bytes.fromPx);
    path.lineTo(toPixel(time, series[0]?.timeNs ?? 0), bytes.fromPx);
    context.fill(path);
  }
  context.restore();
}
