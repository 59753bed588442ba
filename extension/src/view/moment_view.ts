import type { Scope } from "../base/scope.ts";
import { packBars, type BarPiece, type Bars } from "../model/bars.ts";
import { isPendingAfter } from "../model/blocks.ts";
import { categoryOf, type Categories } from "../model/categories.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import type { Highlighted } from "../model/selected.ts";
import type { SegmentAtMoment } from "../model/moment.ts";
import { PlacedRows } from "../render/placed_rows.ts";
import { createRaster, findRect, paintRects, type Palette, type Rects } from "../render/raster.ts";
import { drawBytesAcross } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { paintImage, rasterFor } from "./image.ts";
import { drawHighlighted } from "./highlighted_marks.ts";
import { blockNames } from "./map_names.ts";
import { Plot, type Drawing, type PlotArea } from "./plot.ts";
import { blockPalette, CACHED_COLOUR, SPLIT_COLOUR } from "./theme.ts";

const TALLEST_ROW_PX = 40;
const SHORTEST_ROW_PX = 14;
const COMFORTABLE_HEIGHT_PX = 360;
const BAR_SHARE = 0.8;
const OPTIONS = {
  label: "Segments at the moment shown. Arrow keys walk through the blocks, Enter selects one.",
  heightPx: COMFORTABLE_HEIGHT_PX,
  marginsPx: { left: 16, right: 16, top: 8, bottom: 42 },
};

interface Moment extends Bars {
  readonly row: number;
  readonly segments: readonly SegmentAtMoment[];
}

/** One bar for each segment at the chosen moment, with the blocks and the free space in it. */
export function momentView(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { selection } = chart;
  const { categories } = chart.grouping;
  const plot = new Plot(scope, parent, chart.frames, OPTIONS);
  let moment = momentAfter(chart.timeline, selection.momentRow.value);
  let raster = createRaster(1, 1);
  let rects: Rects | undefined;
  const refresh = (): void => {
    moment = momentAfter(chart.timeline, selection.momentRow.value);
    plot.setHeight(heightOf(moment.rows));
    plot.redraw();
  };
  plot.onDraw(
    (drawing) => {
      raster = rasterFor(drawing, raster);
      const palette = blockPalette(drawing.theme, categories.value.isOrdered);
      rects = pieceRects(moment, chart.timeline, categories.value, palette, raster.height);
      paintRects(raster, [rects], { left: 0, right: moment.widthBytes });
      paintImage(drawing, raster);
      const drawName = blockNames(drawing, categories.value);
      for (const piece of moment.pieces) {
        if (piece.block !== undefined) {
          drawName(piece.block, areaOf(drawing, moment, piece));
        }
      }
      drawBytesAcross(drawing, moment.widthBytes);
    },
    (drawing) =>
      drawHighlighted(drawing, highlightedPieces(drawing, moment, selection.highlighted.value)),
  );
  const pieceAt = (offsetX: number, offsetY: number): BarPiece | undefined => {
    const ratio = raster.width / plot.area.width;
    const { left, top } = plot.area;
    const [x, y] = [(offsetX - left) * ratio, (offsetY - top) * ratio];
    const viewport = { left: 0, right: moment.widthBytes };
    const piece = rects === undefined ? undefined : findRect(rects, viewport, raster.width, x, y);
    return moment.pieces[piece ?? -1];
  };
  chart.tooltip.attach(scope, plot.host, (x, y) => {
    const piece = pieceAt(x, y);
    return piece && linesOf(chart, moment, piece);
  });
  scope.listen(plot.host, "click", (event) => {
    const block = pieceAt(event.offsetX, event.offsetY)?.block;
    selection.selected.value = block === undefined ? undefined : { kind: "block", block };
  });
  scope.watch(() => plot.redrawOverlay(), selection.highlighted);
  addWalk(plot, chart, () => moment);
  scope.watch(refresh, selection.momentRow);
  scope.watch(() => {
    if (chart.timeline.segmentsAfter(moment.row) !== moment.segments) {
      refresh();
    }
  }, chart.revision);
  scope.watch(() => plot.redraw(), categories);
  refresh();
}

function heightOf(rows: number): number {
  const rowPx = Math.min(Math.max(COMFORTABLE_HEIGHT_PX / rows, SHORTEST_ROW_PX), TALLEST_ROW_PX);
  return Math.round(rowPx * rows);
}

function momentAfter(timeline: DeviceTimeline, row: number): Moment {
  const segments = timeline.segmentsAfter(row);
  return { row, segments, ...packBars(segments, timeline.blocks) };
}

function pieceRects(
  moment: Moment,
  timeline: DeviceTimeline,
  categories: Categories,
  palette: Palette,
  height: number,
): Rects {
  const { pieces, row } = moment;
  const rows = new PlacedRows();
  rows.begin(height, 0, moment.rows, 0);
  for (const piece of pieces) {
    rows.push(piece.row + (1 - BAR_SHARE) / 2, piece.row + (1 + BAR_SHARE) / 2);
  }
  return {
    count: pieces.length,
    left: Float64Array.from(pieces, (piece) => piece.from),
    right: Float64Array.from(pieces, (piece) => piece.to),
    rows,
    colour: Uint32Array.from(pieces, ({ block, segment }) =>
      block === undefined ? freeColour(moment.segments[segment]) : categoryOf(categories, block),
    ),
    palette,
    isStriped: (piece) => {
      const block = pieces[piece]?.block;
      return block !== undefined && isPendingAfter(timeline.blocks, block, row);
    },
    isBackdrop: false,
  };
}

/** A segment that is free as a whole can be given back to the device. */
function freeColour(segment: SegmentAtMoment | undefined): number {
  return segment?.blocks.length === 0 ? CACHED_COLOUR : SPLIT_COLOUR;
}

/** Where a piece is in the plot. */
function areaOf(
  { area }: Drawing,
  { rows, widthBytes }: Moment,
  { row, from, to }: BarPiece,
): PlotArea {
  const rowPx = area.height / rows;
  return {
    left: area.left + (from / widthBytes) * area.width,
    top: area.top + (row + (1 - BAR_SHARE) / 2) * rowPx,
    width: ((to - from) / widthBytes) * area.width,
    height: rowPx * BAR_SHARE,
  };
}

function highlightedPieces(drawing: Drawing, moment: Moment, highlighted: Highlighted): PlotArea[] {
  return moment.pieces
    .filter(({ block }) => block !== undefined && highlighted.blocks.has(block))
    .map((piece) => areaOf(drawing, moment, piece));
}

function linesOf(chart: ChartContext, moment: Moment, piece: BarPiece): string[] {
  const origin = moment.segments[piece.segment]?.origin ?? 0;
  return piece.block === undefined
    ? chart.describe.gap(
        origin,
        piece.address,
        piece.to - piece.from,
        moment.segments[piece.segment]?.blocks.length === 0,
      )
    : chart.describe.block(piece.block);
}

/** The arrow keys go from block to block. */
function addWalk(plot: Plot, chart: ChartContext, moment: () => Moment): void {
  let walked = -1;
  plot.scope.listen(plot.host, "keydown", (event) => {
    if (event.key === "Enter" && walked >= 0) {
      const block = moment().pieces[walked]?.block;
      chart.selection.selected.value = block === undefined ? undefined : { kind: "block", block };
      chart.tooltip.hide();
    }
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") {
      return;
    }
    event.preventDefault();
    const { pieces, rows, widthBytes } = moment();
    const next = walked + (event.key === "ArrowLeft" ? -1 : 1);
    walked = Math.min(Math.max(next, 0), pieces.length - 1);
    const piece = pieces[walked];
    if (piece !== undefined) {
      const { left, top, width, height } = plot.area;
      const box = plot.host.getBoundingClientRect();
      const x = box.left + left + (width * (piece.from + piece.to)) / 2 / widthBytes;
      const y = box.top + top + (height * (piece.row + 0.5)) / rows;
      chart.tooltip.show(linesOf(chart, moment(), piece), x, y);
    }
  });
}
