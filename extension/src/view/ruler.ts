import type { Scope } from "../base/scope.ts";
import { drawTimeLabels, scaleAcross } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { drawTimeLabel } from "./cursor.ts";
import { Plot } from "./plot.ts";
import { TIME_MARGINS_PX } from "./time_plot.ts";

const ROW_PX = 19;

/** The labels of the time axis that all tracks share, and the names of cells or ranges. */
export function ruler(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { selection, frames } = chart;
  const marginsPx = { ...TIME_MARGINS_PX, top: 0, bottom: 0 };
  const plot = new Plot(scope, parent, frames, { label: "Time axis", heightPx: ROW_PX, marginsPx });
  Object.assign(plot.host, { tabIndex: -1, role: "img" });
  plot.onDraw(
    (drawing) => {
      const { fromNs, toNs } = selection.window.range.value;
      const time = scaleAcross(drawing.area, fromNs, toNs);
      drawTimeLabels(drawing, time);
      const area = { ...drawing.area, top: ROW_PX, height: ROW_PX };
      chart.bands.drawGround({ ...drawing, area }, time);
      chart.bands.drawNames({ ...drawing, area }, time);
    },
    (drawing) => {
      const { fromNs, toNs } = selection.window.range.value;
      const time = scaleAcross(drawing.area, fromNs, toNs);
      const momentNs = chart.timeline.events.timeNs[selection.momentRow.value] ?? 0;
      drawTimeLabel(drawing, time, selection.cursorNs.value ?? momentNs);
    },
  );
  const fit = (): void => {
    plot.setHeight(chart.bands.row === undefined ? ROW_PX : 2 * ROW_PX);
    plot.redraw();
  };
  scope.watch(fit, chart.revision);
  scope.watch(() => plot.redraw(), selection.window.range);
  scope.watch(() => plot.redrawOverlay(), selection.cursorNs, selection.momentRow);
  fit();
}
