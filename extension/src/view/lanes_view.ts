import { formatCount, formatDuration } from "../base/format.ts";
import type { Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import type { Lane } from "../model/lane.ts";
import { NO_ACTIVITY } from "../model/idle_gaps.ts";
import type { Gap, Selected } from "../model/selected.ts";
import { tableOfSpan, SpanKind } from "../model/span_kinds.ts";
import type { RowColumns, SpanRow } from "../model/span_row.ts";
import type { GpuDescriptions } from "../model/gpu_description.ts";
import { idleLines } from "../model/idle_texts.ts";
import { paintLane } from "../render/lane_raster.ts";
import { createRaster, idAt, type Raster } from "../render/raster.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { paintImage, rasterFor } from "./image.ts";
import { drawArrows } from "./lane_arrows.ts";
import { drawHeadings, drawLaneGrounds, drawLaneTitles, drawUnseen } from "./lane_frames.ts";
import {
  layOutLanes,
  MOST_LANES,
  spanWithId,
  type LaneLayout,
  type SpanInRow,
} from "./lane_layout.ts";
import { addLaneWalk, drawChosenLane, spanAtTime } from "./lane_walk.ts";
import { drawSpanNames } from "./lane_names.ts";
import {
  findHighlightedSpans,
  highlightedBoxes,
  type HighlightedSpans,
} from "./highlighted_lanes.ts";
import { drawHighlighted } from "./highlighted_marks.ts";
import { addPins, laneAtHeight, nameOfLane, pinnedFirst, PIN_HINT } from "./pinned_lanes.ts";
import { linesAbout } from "./selected_panel.ts";
import type { Drawing, Plot } from "./plot.ts";
import { lanePalette } from "./theme.ts";
import { timePlot } from "./time_plot.ts";

const POINTER_SLACK_PX = 2;
/** Room for the heading of the track. */
const TOP_PX = 22;

/** What each stream and each host thread did over time; `needs` takes the heights for that. */
export function lanesView(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  needs: (heightPx: number, leastPx: number) => void,
): void {
  const { pinned } = chart.selection;
  const layOut = (roomPx?: number): LaneLayout =>
    layOutLanes(
      chart.lanes,
      (stream) => chart.idleOf(stream)?.gaps,
      roomPx,
      (lanes) => pinnedFirst(lanes, pinned.value),
    );
  let layout = layOut();
  let laidOutForPx = 0;
  const options = {
    label: "Streams and host threads over time. Arrow keys move the cursor.",
    heightPx: layout.heightPx,
    topPx: TOP_PX,
  };
  let raster = createRaster(1, 1);
  const { selection } = chart;
  let highlighted: HighlightedSpans = new Map();
  let hazardAt: ReturnType<typeof drawArrows> = () => undefined;
  const cut = element("p", "gpuviz-section__hint");
  scope.append(parent, cut);
  const draw = (drawing: Drawing, time: Scale): void => {
    if (drawing.area.height !== laidOutForPx) {
      place(drawing.area.height);
    }
    drawLaneGrounds(drawing, layout);
    raster = rasterFor(drawing, raster);
    paintLanes(raster, layout, drawing, time, chart.describeGpu);
    paintImage(drawing, raster);
    drawSpanNames(drawing, layout, raster, chart.describeGpu, (stream) => chart.idleOf(stream));
    drawUnseen(drawing, layout, time, chart.gpu.unseen.spans);
    drawLaneTitles(drawing, layout, (lane) => pinned.value.includes(nameOfLane(lane)));
    drawHeadings(drawing, layout);
    hazardAt = drawArrows(drawing, layout, time, chart);
  };
  const plot = timePlot(scope, parent, chart, options, {
    draw,
    drawHighlighted: (drawing, time) =>
      drawHighlighted(drawing, highlightedBoxes(drawing, time, highlighted)),
    drawOver: (drawing) => drawChosenLane(drawing, layout.lanes[walk.value]),
    pickByKey: (timeNs) => {
      const home = layout.lanes[walk.value];
      return home && selectedSpan(spanAtTime(home, timeNs), layout);
    },
    pick: (x, y) => {
      const hazard = hazardAt(x, y);
      hazard?.show();
      return hazard ? undefined : selectedSpan(spanNear(plot, raster, layout, x, y), layout);
    },
  });
  const walk = addLaneWalk(plot, chart, () => layout);
  addPins(plot, pinned, walk, () => layout);
  const light = (): void => {
    highlighted = findHighlightedSpans(layout, selection.highlighted.value, (span) =>
      chart.timesOf(span),
    );
  };
  scope.watch(light, selection.highlighted);
  const place = (roomPx: number): void => {
    laidOutForPx = roomPx;
    layout = layOut(roomPx);
    light();
    tell();
  };
  const refresh = (): void => {
    const { heightPx } = layOut();
    needs(...plot.setHeight(heightPx, layOut(0).heightPx));
    place(plot.area.height);
    plot.redraw();
  };
  scope.watch(refresh, chart.revision);
  scope.watch(() => {
    parent.scrollTop = 0;
    place(plot.area.height);
    plot.redraw();
  }, pinned);
  scope.watch(() => plot.redraw(), chart.hazards);
  scope.watch(() => plot.redrawOverlay(), walk);
  const list = element("ul", "gpuviz-unseen");
  plot.host.append(list);
  const tell = (): void => {
    listLanes(list, layout, plot.area.top);
    const all = chart.lanes.length;
    cut.hidden = all <= MOST_LANES;
    cut.textContent = `Of ${formatCount(all)} lanes the ${MOST_LANES} with most spans are shown, streams first.`;
  };
  refresh();
  chart.tooltip.attach(scope, plot.host, (x, y) => {
    const { fromNs, toNs } = selection.window.range.value;
    const hazard = hazardAt(x, y);
    if (hazard) {
      return [hazard.said.title.replaceAll("`", "")];
    }
    const titled = x < plot.area.left ? laneAtHeight(layout, y - plot.area.top) : undefined;
    if (titled !== undefined) {
      return [...linesAboutLane(titled, chart, fromNs, toNs), PIN_HINT];
    }
    const found = spanNear(plot, raster, layout, x, y);
    const selected = selectedSpan(found, layout);
    return found === undefined || selected?.kind === "gap"
      ? selected && linesAbout(selected, chart)
      : chart.describeGpu.spanInRow(found.row, found.span, (toNs - fromNs) / plot.area.width);
  });
}

/** The lanes for a screen reader, which cannot see the drawing. */
function listLanes(list: HTMLElement, layout: LaneLayout, top: number): void {
  list.replaceChildren();
  for (const { lane, topPx, heightPx } of layout.lanes) {
    const count = lane.stack.count;
    const title = lane.group === undefined ? lane.title : `${lane.group}, ${lane.title}`;
    const item = element("li", "", `${title}: ${formatCount(count)} spans`);
    item.dataset["lane"] = lane.title;
    item.dataset["middlePx"] = String(top + topPx + heightPx / 2);
    list.append(item);
  }
}

function paintLanes(
  raster: Raster,
  layout: LaneLayout,
  drawing: Drawing,
  time: Scale,
  describe: GpuDescriptions,
): void {
  const { theme, pixelRatio } = drawing;
  const strong = lanePalette(theme);
  const quiet = lanePalette(theme, layout.hasAllIdle);
  for (const { lane, rows } of layout.lanes) {
    const palette = lane.stream === undefined ? strong : quiet;
    for (const { row, topPx, heightPx, firstId } of rows) {
      const { share, span } = columnsOf(row, time, raster.width);
      const fromY = Math.round(topPx * pixelRatio);
      const toY = Math.min(Math.round((topPx + heightPx) * pixelRatio), raster.height);
      const placeOf = describe.palettePlaces(row);
      paintLane(raster, { fromY, toY, share, span, placeOf, firstId }, palette);
    }
  }
}

/** What is in each column of a row; what takes no time is drawn three columns wide. */
function columnsOf(row: SpanRow, time: Scale, width: number): RowColumns {
  const columns = row.columns(time.from, time.to, width);
  const { share, span } = columns;
  if (tableOfSpan(row.kind[0] ?? 0) === "memoryOperations") {
    const seen = [...span.keys()].filter((column) => (span[column] ?? -1) >= 0);
    for (const column of seen) {
      for (let aside = Math.max(column - 1, 0); aside <= column + 1 && aside < width; aside += 1) {
        share[aside] = 1;
        span[aside] = span[column] ?? -1;
      }
    }
  }
  return columns;
}

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

function selectedSpan(found: SpanInRow | undefined, layout: LaneLayout): Selected | undefined {
  if (found === undefined) {
    return undefined;
  }
  const { row, span } = found;
  return row.kind[span] === SpanKind.idle
    ? { kind: "gap", gap: gapOf(found, layout) }
    : { kind: "span", spanKind: row.kind[span] ?? 0, row: row.source[span] ?? 0 };
}

function gapOf({ row, span }: SpanInRow, { lanes }: LaneLayout): Gap {
  const home = lanes.find(({ rows }) => rows.some((placed) => placed.row === row));
  return {
    fromNs: row.fromNs[span] ?? 0,
    toNs: row.toNs[span] ?? 0,
    next: row.source[span] ?? NO_ACTIVITY,
    stream: home?.lane.stream,
  };
}

/** A lane, how full it is in a window, and why it is not fuller. */
function linesAboutLane(lane: Lane, chart: ChartContext, fromNs: number, toNs: number): string[] {
  const lines = chart.describeGpu.lane(lane, fromNs, toNs);
  const idle = lane.stream === undefined ? undefined : chart.idleOf(lane.stream);
  if (idle === undefined) {
    return lines;
  }
  const idleNs = idle.gaps.takenIn(fromNs, toNs);
  const causes = idleLines(idle.causesIn(fromNs, toNs), idleNs);
  const unseenNs = chart.gpu.unseen.timeIn(fromNs, toNs);
  const unseen = unseenNs > 0 ? [`not recorded for ${formatDuration(unseenNs)} of it`] : [];
  return [...lines, `idle for ${formatDuration(idleNs)} of it`, ...causes, ...unseen];
}
