import type { Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import { NOTHING_HIGHLIGHTED, type Selected } from "../model/selected.ts";
import { drawTimeGrid, drawTimeLabels, scaleAcross } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { drawCursor, drawExtent, drawMark, drawMeasured, drawMoment } from "./cursor.ts";
import { addTimeGestures } from "./gestures.ts";
import { Plot, type Drawing } from "./plot.ts";

/** Left and right of the plot area of every chart on the time axis, so that times lie in line. */
export const TIME_MARGINS_PX = { left: 112, right: 16 } as const;
const BOTTOM_PX = 5;
const AXIS_PX = 24;

interface TimePlotOptions {
  readonly label: string;
  /** Of the plot area. */
  readonly heightPx: number;
  /** Above the plot area. */
  readonly topPx: number;
  /** Whether it has labels of its own, because it is not below the ruler. */
  readonly hasAxis?: boolean;
}

/** What a plot on the time axis adds to it. */
interface TimePlotParts {
  readonly draw: (drawing: Drawing, time: Scale) => void;
  /** Draws labels, over the edges of ranges. */
  readonly drawLabels?: (drawing: Drawing, time: Scale) => void;
  /** Draws what lights up with the selection. */
  readonly drawHighlighted?: (drawing: Drawing, time: Scale) => void;
  /** Draws above all else, also where nothing is selected. */
  readonly drawOver?: (drawing: Drawing, time: Scale) => void;
  /** What a click at a place of the plot selects. */
  readonly pick?: (x: number, y: number) => Selected | undefined;
  /** What Enter selects when the cursor is at a time; undefined leaves the selection. */
  readonly pickByKey?: (timeNs: number) => Selected | undefined;
}

/** A plot on the shared time axis, with its cursor, its gestures and the moment shown. */
export function timePlot(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  { label, heightPx, topPx, hasAxis = false }: TimePlotOptions,
  { draw, drawLabels, drawHighlighted, drawOver, pick, pickByKey }: TimePlotParts,
): Plot {
  const { selection } = chart;
  const marginsPx = { ...TIME_MARGINS_PX, top: topPx, bottom: hasAxis ? AXIS_PX : BOTTOM_PX };
  const plot = new Plot(scope, parent, chart.frames, { label, heightPx, marginsPx });
  const time = (): Scale => {
    const { fromNs, toNs } = selection.window.range.value;
    return scaleAcross(plot.area, fromNs, toNs);
  };
  const marked = addTimeGestures(plot, selection, time, (timeNs, place) => {
    const { row } = selection.stateAt(chart.timeline, timeNs);
    selection.momentRow.value = Math.max(row, chart.timeline.firstRow);
    if (pick !== undefined && place !== undefined) {
      selection.selected.value = pick(place.offsetX, place.offsetY);
    } else if (place === undefined) {
      selection.selected.value = pickByKey?.(timeNs) ?? selection.selected.value;
    }
  });
  plot.onDraw(
    (drawing) => {
      drawTimeGrid(drawing, time());
      if (hasAxis) {
        drawTimeLabels(drawing, time(), drawing.area.top + drawing.area.height + 6);
      }
      chart.bands.drawGround(drawing, time());
      draw(drawing, time());
      chart.bands.drawEdges(drawing, time());
      drawLabels?.(drawing, time());
      chart.drawEnd?.(drawing, time());
    },
    (drawing) => {
      drawHighlighted?.(drawing, time());
      if (selection.selected.value !== undefined) {
        drawExtent(drawing, time(), chart.timesOf(selection.selected.value));
      }
      drawOver?.(drawing, time());
      const isFree = selection.highlighted.value === NOTHING_HIGHLIGHTED;
      drawMeasured(drawing, time(), selection.measured.value, isFree);
      const momentNs = chart.timeline.events.timeNs[selection.momentRow.value] ?? 0;
      drawMoment(drawing, time(), momentNs);
      drawCursor(drawing, time(), selection.cursorNs.value);
      drawMark(drawing, marked.value);
    },
  );
  scope.watch(() => plot.redraw(), selection.window.range, chart.revision);
  scope.watch(
    () => plot.redrawOverlay(),
    selection.cursorNs,
    selection.momentRow,
    selection.highlighted,
    selection.measured,
    marked,
  );
  return plot;
}
