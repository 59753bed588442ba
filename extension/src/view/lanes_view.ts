import { formatCount } from "../base/format.ts";
import type { Scale } from "../base/scale.ts";
import type { Lane } from "../model/lanes.ts";
import type { Picked } from "../model/picked.ts";
import type { SpanRow } from "../model/span_row.ts";
import { paintLane } from "../render/lane_raster.ts";
import { createRaster, idAt, type Raster } from "../render/raster.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { paintImage, rasterFor } from "./image.ts";
import { drawLaneGrounds, drawLaneTitles } from "./lane_frames.ts";
import { layOutLanes, spanWithId, type LaneLayout } from "./lane_layout.ts";
import { drawSpanNames } from "./lane_names.ts";
import { findLitSpans, litBoxes, type LitSpans } from "./lit_lanes.ts";
import { drawLit } from "./lit_marks.ts";
import { TIME_MARGINS_PX } from "./margins.ts";
import type { Drawing, Plot } from "./plot.ts";
import { lanePalette } from "./theme.ts";
import { timePlot } from "./time_plot.ts";
import { drawWaitArrows } from "./wait_arrows.ts";

const MARGINS_PX = { ...TIME_MARGINS_PX, top: 6, bottom: 42 };
const POINTER_SLACK_PX = 2;

/** What each stream and each host thread did over time. */
export function lanesView(parent: HTMLElement, chart: ChartContext): Plot {
  let layout = layOutLanes(chart.lanes);
  const options = {
    label: "Streams and host threads over time. Arrow keys move the cursor.",
    heightPx: heightOf(layout),
    marginsPx: MARGINS_PX,
  };
  let raster = createRaster(1, 1);
  const { selection } = chart;
  let lit: LitSpans = new Map();
  const draw = (drawing: Drawing, time: Scale): void => {
    drawLaneGrounds(drawing, layout);
    raster = rasterFor(drawing, raster);
    paintLanes(raster, layout, drawing, time);
    paintImage(drawing, raster);
    drawSpanNames(drawing, layout, raster, chart.describeWork);
    drawLaneTitles(drawing, layout);
    drawWaitArrows(drawing, layout, time, chart.waits);
  };
  const plot = timePlot(parent, chart, options, {
    draw,
    drawLit: (drawing, time) => {
      drawLit(drawing, litBoxes(drawing, time, lit));
    },
    pick: (x, y) => pickedSpan(spanNear(plot, raster, layout, x, y)),
  });
  const light = (): void => {
    const { lit: lights, picked } = selection;
    lit = findLitSpans(layout, lights.value, picked.value, (span) => chart.timesOf(span));
  };
  plot.scope.defer(selection.lit.subscribe(light));
  plot.scope.defer(
    chart.revision.subscribe(() => {
      layout = layOutLanes(chart.lanes);
      light();
      listLanes(list, layout);
      plot.setHeight(heightOf(layout));
    }),
  );
  const list = element("ul", "gpuviz-unseen");
  plot.host.append(list);
  listLanes(list, layout);
  addHover(
    plot,
    chart,
    (x, y) => spanNear(plot, raster, layout, x, y),
    (x, y) => (x < plot.area.left ? laneAtHeight(layout, y - plot.area.top) : undefined),
  );
  return plot;
}

function heightOf(layout: LaneLayout): number {
  return layout.heightPx + MARGINS_PX.top + MARGINS_PX.bottom;
}

/** The lanes for a screen reader, which cannot see the drawing. */
function listLanes(list: HTMLElement, layout: LaneLayout): void {
  list.replaceChildren();
  for (const { lane, topPx, heightPx } of layout.lanes) {
    const count = lane.stack.count;
    const item = element("li", "", `${lane.title}: ${formatCount(count)} spans`);
    item.dataset["lane"] = lane.title;
    item.dataset["middlePx"] = String(MARGINS_PX.top + topPx + heightPx / 2);
    list.append(item);
  }
}

function paintLanes(raster: Raster, layout: LaneLayout, drawing: Drawing, time: Scale): void {
  const { theme, pixelRatio } = drawing;
  const palette = lanePalette(theme);
  for (const { rows } of layout.lanes) {
    for (const { row, topPx, heightPx, firstId } of rows) {
      const { share, span } = row.columns(time.from, time.to, raster.width);
      const fromY = Math.round(topPx * pixelRatio);
      const toY = Math.min(Math.round((topPx + heightPx) * pixelRatio), raster.height);
      paintLane(raster, { fromY, toY, share, span, kind: row.kind, firstId }, palette);
    }
  }
}

function laneAtHeight({ lanes }: LaneLayout, y: number): Lane | undefined {
  return lanes.find(({ topPx, heightPx }) => y >= topPx && y < topPx + heightPx)?.lane;
}

type SpanInRow = { readonly row: SpanRow; readonly span: number };

/** The span at a place of the plot, or the nearest a few pixels beside it. */
function spanNear(
  plot: Plot,
  raster: Raster,
  layout: LaneLayout,
  x: number,
  y: number,
): SpanInRow | undefined {
  const ratio = raster.width / plot.area.width;
  for (let slack = 0; slack <= POINTER_SLACK_PX; slack += 1) {
    for (const aside of [slack, -slack]) {
      const at = (x - plot.area.left + aside) * ratio;
      const id = idAt(raster, at, (y - plot.area.top) * ratio);
      if (id !== undefined) {
        return spanWithId(layout, id);
      }
    }
  }
  return undefined;
}

function pickedSpan(found: SpanInRow | undefined): Picked | undefined {
  return found === undefined
    ? undefined
    : {
        kind: "span",
        spanKind: found.row.kind[found.span] ?? 0,
        row: found.row.source[found.span] ?? 0,
      };
}

function addHover(
  plot: Plot,
  chart: ChartContext,
  spanAt: (x: number, y: number) => SpanInRow | undefined,
  laneAt: (x: number, y: number) => Lane | undefined,
): void {
  plot.scope.listen(plot.host, "pointermove", (event) => {
    const { tooltip, describeWork, selection } = chart;
    const { fromNs, toNs } = selection.window.range.value;
    const titled = laneAt(event.offsetX, event.offsetY);
    if (titled !== undefined) {
      tooltip.show(describeWork.lane(titled, fromNs, toNs), event.clientX, event.clientY);
      return;
    }
    const found = spanAt(event.offsetX, event.offsetY);
    if (found === undefined) {
      tooltip.hide();
      return;
    }
    const pixelNs = (toNs - fromNs) / plot.area.width;
    const lines = describeWork.spanInRow(found.row, found.span, pixelNs);
    tooltip.show(lines, event.clientX, event.clientY);
  });
  plot.scope.listen(plot.host, "pointerleave", () => {
    chart.tooltip.hide();
  });
}
