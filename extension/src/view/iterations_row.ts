import { counted, formatBytes, formatCount, formatDuration } from "../base/format.ts";
import { fromPixel, toPixel, type Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import type { Iteration } from "../model/conclusions.ts";
import { SpanRow } from "../model/span_row.ts";
import { drawTitle, scaleAcross } from "./axes.ts";
import { Bands, SEPARATOR } from "./bands.ts";
import type { ChartContext } from "./chart_context.ts";
import { Plot, type Drawing } from "./plot.ts";
import { TIME_MARGINS_PX } from "./time_plot.ts";

const ROW_PX = 19;
const TICK_PX = 3;

/** A row of iterations below the time axis. */
export function iterationsRow(
  scope: Scope,
  panes: HTMLElement,
  { frames, selection }: ChartContext,
  iterations: readonly Iteration[],
): void {
  const row = new SpanRow();
  iterations.forEach(([fromNs, toNs], place) => row.push(fromNs, toNs, 0, place));
  const nameOf = (_: SpanRow, span: number): string => {
    const duration = formatDuration((row.toNs[span] ?? 0) - (row.fromNs[span] ?? 0));
    return [span + 1, duration, `peak ${formatBytes(iterations[span]?.[2] ?? 0)}`].join(SEPARATOR);
  };
  const bands = new Bands(() => row, nameOf);
  const title = counted(iterations.length, "iteration");
  const plot = new Plot(scope, panes.querySelector<HTMLElement>(".gpuviz-ruler") ?? panes, frames, {
    label: "Iterations. A click shows and measures one.",
    heightPx: ROW_PX,
    marginsPx: { ...TIME_MARGINS_PX, top: 0, bottom: 1 },
  });
  Object.assign(plot.host, { tabIndex: -1, role: "img" });
  const time = (): Scale => {
    const { fromNs, toNs } = selection.window.range.value;
    return scaleAcross(plot.area, fromNs, toNs);
  };
  plot.onDraw(
    (drawing) => {
      drawTicks(drawing, time(), row);
      bands.drawGround(drawing, time());
      bands.drawEdges(drawing, time());
      bands.drawNames(drawing, time());
      const isWide = drawing.context.measureText(title).width < drawing.area.left - 8;
      drawTitle(drawing, isWide ? title : formatCount(iterations.length), ROW_PX / 2);
    },
    () => undefined,
  );
  scope.watch(() => plot.redraw(), selection.window.range);
  scope.listen(plot.host, "click", (event) => {
    const timeNs = fromPixel(time(), event.offsetX);
    const [span, after] = row.range(timeNs, timeNs + 1);
    if (span < after) {
      selection.showMeasured({ fromNs: row.fromNs[span] ?? 0, toNs: row.toNs[span] ?? 0 });
    }
  });
}

/** A tick where an iteration begins; many in the same few pixels have one. */
function drawTicks({ context, area, theme }: Drawing, time: Scale, row: SpanRow): void {
  const [first, after] = row.range(time.from, time.to);
  let freeFromPx = -Infinity;
  context.fillStyle = theme.muted;
  for (let span = first; span < after; span += 1) {
    const at = Math.round(toPixel(time, row.fromNs[span] ?? 0));
    if (at >= Math.max(area.left, freeFromPx)) {
      context.fillRect(at, area.top + 5, 1, area.height - 10);
      freeFromPx = at + TICK_PX;
      // Of a million iterations, only those that begin in another tick's place are looked at.
      span = Math.max(span, row.range(fromPixel(time, freeFromPx - 0.5), time.to)[0] - 1);
    }
  }
}
