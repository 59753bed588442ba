import { fromPixel } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import { drawTimeLabels, drawTitle, scaleAcross } from "./axes.ts";
import type { Bands } from "./bands.ts";
import type { ChartContext } from "./chart_context.ts";
import { drawTimeLabel } from "./cursor.ts";
import { Plot } from "./plot.ts";
import { TIME_MARGINS_PX } from "./time_plot.ts";

const ROW_PX = 19;

/**
 * The labels of the time axis that all tracks share, the names of cells or ranges, and the
 * iterations, of which a click shows one.
 */
export function ruler(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { selection, frames } = chart;
  const marginsPx = { ...TIME_MARGINS_PX, top: 0, bottom: 0 };
  const plot = new Plot(scope, parent, frames, { label: "Time axis", heightPx: ROW_PX, marginsPx });
  Object.assign(plot.host, { tabIndex: -1, role: "img" });
  const rows = (): Bands[] =>
    [chart.bands, chart.iterations.value].flatMap((bands) =>
      bands?.row === undefined ? [] : [bands],
    );
  plot.onDraw(
    (drawing) => {
      const { fromNs, toNs } = selection.window.range.value;
      const time = scaleAcross(drawing.area, fromNs, toNs);
      drawTimeLabels(drawing, time);
      rows().forEach((bands, number) => {
        const area = { ...drawing.area, top: (number + 1) * ROW_PX, height: ROW_PX - 1 };
        bands.drawGround({ ...drawing, area }, time);
        bands.drawEdges({ ...drawing, area }, time);
        bands.drawNames({ ...drawing, area }, time);
        if (bands === chart.iterations.value) {
          drawTitle({ ...drawing, area }, "iterations", area.top + ROW_PX / 2);
        }
      });
    },
    (drawing) => {
      const { fromNs, toNs } = selection.window.range.value;
      const time = scaleAcross(drawing.area, fromNs, toNs);
      const momentNs = chart.timeline.events.timeNs[selection.momentRow.value] ?? 0;
      drawTimeLabel(drawing, time, selection.cursorNs.value ?? momentNs);
    },
  );
  const fit = (): void => {
    plot.setHeight((rows().length + 1) * ROW_PX);
    plot.redraw();
  };
  scope.listen(plot.host, "click", (event) => {
    const { fromNs, toNs } = selection.window.range.value;
    const timeNs = fromPixel(scaleAcross(plot.area, fromNs, toNs), event.offsetX);
    const row = rows()[Math.floor(event.offsetY / ROW_PX) - 1]?.row;
    const [span, after] = row?.range(timeNs, timeNs + 1) ?? [0, 0];
    if (row !== undefined && span < after) {
      selection.showMeasured({ fromNs: row.fromNs[span] ?? 0, toNs: row.toNs[span] ?? 0 });
    }
  });
  scope.watch(fit, chart.revision, chart.iterations);
  scope.watch(() => plot.redraw(), selection.window.range);
  scope.watch(() => plot.redrawOverlay(), selection.cursorNs, selection.momentRow);
  fit();
}
