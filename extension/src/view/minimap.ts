import { fromPixel, toPixel, type Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import { columnLargest, columnRows } from "../model/decimation.ts";
import { SpanKind } from "../model/span_kinds.ts";
import { drawTitle, line, scaleAcross } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { Plot, type Drawing } from "./plot.ts";
import { TIME_MARGINS_PX } from "./time_plot.ts";

const OPTIONS = {
  label: "Overview of the recording. Arrow keys move the part that is shown.",
  heightPx: 34,
  marginsPx: { ...TIME_MARGINS_PX, top: 3, bottom: 3 },
};
const BUSY_PX = 10;
const OUTSIDE = 0.6;
const KEY_PAN = 0.2;
const CLICK_SLACK_PX = 4;

/** The whole recording, with the part that the charts show. */
export function minimap(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { selection } = chart;
  const plot = new Plot(scope, parent, chart.frames, OPTIONS);
  const time = (): Scale => {
    const { fromNs, toNs } = selection.window.full;
    return scaleAcross(plot.area, fromNs, toNs);
  };
  plot.onDraw(
    (drawing) => {
      drawGround(drawing);
      drawMemory(drawing, chart, time());
      drawBusy(drawing, chart, time());
      if (selection.window.full.fromNs > 0) {
        drawCut(drawing);
      }
      chart.drawEnd?.(drawing, time());
    },
    (drawing) => drawWindow(drawing, chart, time()),
  );
  addMoves(plot, chart, time);
  scope.watch(() => plot.redrawOverlay(), selection.window.range);
  scope.watch(() => plot.redraw(), chart.revision);
}

function drawGround({ context, area, theme }: Drawing): void {
  context.fillStyle = theme.ground;
  context.fillRect(area.left, area.top, area.width, area.height);
}

/** Two strokes through the edge where the axis begins later than the recording. */
function drawCut({ context, area, theme }: Drawing): void {
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5;
  const bottom = area.top + area.height;
  for (const x of [area.left - 5, area.left - 1]) {
    line(context, x, bottom, x + 6, area.top);
  }
}

function drawMemory(drawing: Drawing, { timeline }: ChartContext, time: Scale): void {
  const { context, area, theme } = drawing;
  if (timeline.events.count === 0) {
    return;
  }
  drawTitle(drawing, "allocated", area.top + (area.height - BUSY_PX) / 2);
  const columns = Math.max(Math.round(area.width), 1);
  const rows = columnRows(timeline.events.timeNs, time.from, time.to, columns);
  const largest = columnLargest(timeline.lines.allocated, rows);
  const height = area.height - BUSY_PX - 2;
  const highest = largest.reduce((high, level) => Math.max(high, level), 1);
  largest.forEach((level, column) => {
    const high = (level / highest) * height;
    context.fillStyle = theme.allocatedFill;
    context.fillRect(area.left + column, area.top + height - high, 1, high);
    context.fillStyle = theme.allocated;
    context.fillRect(area.left + column, area.top + height - high, 1, Math.min(high, 2));
  });
}

/** How busy the device was: for each column the stream that was busiest. */
function drawBusy(drawing: Drawing, { ownStreams }: ChartContext, time: Scale): void {
  const { context, area, theme } = drawing;
  const rows = ownStreams.flatMap((lane) => lane.stack.rows);
  if (rows.length === 0) {
    return;
  }
  const columns = Math.max(Math.round(area.width), 1);
  const busiest = new Float32Array(columns);
  for (const row of rows) {
    row.columns(time.from, time.to, columns).share.forEach((share, column) => {
      busiest[column] = Math.max(busiest[column] ?? 0, share);
    });
  }
  const bottom = area.top + area.height;
  drawTitle(drawing, "GPU busy", bottom - BUSY_PX / 2);
  context.fillStyle = theme.spans[SpanKind.kernel] ?? theme.accent;
  busiest.forEach((share, column) => {
    const high = Math.min(share, 1) * BUSY_PX;
    context.fillRect(area.left + column, bottom - high, 1, high);
  });
}

function drawWindow(
  { context, area, theme }: Drawing,
  { selection }: ChartContext,
  time: Scale,
): void {
  const { fromNs, toNs } = selection.window.range.value;
  const from = toPixel(time, fromNs);
  const width = Math.max(toPixel(time, toNs) - from, 2);
  context.globalAlpha = OUTSIDE;
  context.fillStyle = theme.background;
  context.fillRect(area.left, area.top, from - area.left, area.height);
  context.fillRect(from + width, area.top, area.left + area.width - from - width, area.height);
  context.globalAlpha = 1;
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5;
  context.strokeRect(from, area.top, width, area.height);
}

/**
 * A press in the part shown moves it along with the pointer; elsewhere a click moves it there, and
 * a drag shows what it marks.
 */
function addMoves(plot: Plot, { selection }: ChartContext, time: () => Scale): void {
  const { scope, host } = plot;
  let grabNs: number | undefined;
  let marked: { readonly atNs: number; readonly x: number } | undefined;
  const moveTo = (event: PointerEvent): void => {
    const { fromNs, toNs } = selection.window.range.value;
    const from = fromPixel(time(), event.offsetX) - (grabNs ?? 0);
    selection.window.show(from, from + toNs - fromNs);
  };
  scope.listen(host, "pointerdown", (event) => {
    const { fromNs, toNs } = selection.window.range.value;
    const at = fromPixel(time(), event.offsetX);
    const isInside = at >= fromNs && at <= toNs && !selection.window.isFull;
    marked = isInside ? undefined : { atNs: at, x: event.offsetX };
    grabNs = isInside ? at - fromNs : (toNs - fromNs) / 2;
    host.setPointerCapture(event.pointerId);
    if (!selection.window.isFull) {
      moveTo(event);
    }
  });
  scope.listen(host, "pointermove", (event) => {
    if (grabNs === undefined) {
      return;
    }
    if (marked === undefined) {
      moveTo(event);
    } else if (Math.abs(event.offsetX - marked.x) > CLICK_SLACK_PX) {
      const at = fromPixel(time(), event.offsetX);
      selection.window.show(Math.min(at, marked.atNs), Math.max(at, marked.atNs));
    }
  });
  scope.listen(host, "dblclick", () => selection.window.reset());
  for (const end of ["pointerup", "pointercancel"] as const) {
    scope.listen(host, end, () => {
      grabNs = undefined;
    });
  }
  scope.listen(host, "keydown", (event) => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      event.preventDefault();
      selection.window.pan(event.key === "ArrowLeft" ? -KEY_PAN : KEY_PAN);
    }
  });
}
