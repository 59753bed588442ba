import type { Scale } from "../base/scale.ts";
import { drawTimeAxis } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { drawCursor, drawMark, drawMoment } from "./cursor.ts";
import { addTimeGestures } from "./gestures.ts";
import { Plot, type Drawing, type PlotOptions } from "./plot.ts";

/** A plot on the shared time axis, with its cursor, its gestures and the moment shown. */
export function timePlot(
  parent: HTMLElement,
  { frames, timeline, selection }: ChartContext,
  options: PlotOptions,
  draw: (drawing: Drawing, time: Scale) => void,
): Plot {
  const plot = new Plot(parent, frames, options);
  const time = (): Scale => {
    const { fromNs, toNs } = selection.window.range.value;
    const { left, width } = plot.area;
    return { from: fromNs, to: toNs, fromPx: left, toPx: left + width };
  };
  const gestures = addTimeGestures(plot, selection, time, (timeNs) => {
    selection.momentRow.value = timeline.rowAt(timeNs);
  });
  plot.onDraw(
    (drawing) => {
      drawTimeAxis(drawing, time(), "time since the recording began");
      draw(drawing, time());
    },
    (drawing) => {
      const momentNs = timeline.events.timeNs[selection.momentRow.value] ?? 0;
      drawMoment(drawing, time(), momentNs);
      drawCursor(drawing, time(), selection.cursorNs.value);
      drawMark(drawing, gestures.marked.value);
    },
  );
  plot.scope.defer(selection.window.range.subscribe(() => plot.redraw()));
  for (const changed of [selection.cursorNs, selection.momentRow, gestures.marked]) {
    plot.scope.defer(changed.subscribe(() => plot.redrawOverlay()));
  }
  return plot;
}
