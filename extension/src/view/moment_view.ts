import type { Signal } from "../base/signal.ts";
import { barPieces, type BarPiece } from "../model/bar_rects.ts";
import { packBars } from "../model/bars.ts";
import { isPendingAfter } from "../model/blocks.ts";
import { COLOURED, type Categories } from "../model/categories.ts";
import type { Descriptions } from "../model/description.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { segmentsAfter, type SegmentAtMoment } from "../model/moment.ts";
import {
  createRaster,
  paintRects,
  rectAt,
  type Raster,
  type Rects,
} from "../render/raster.ts";
import type { Frames } from "./frames.ts";
import { drawBytesAcross } from "./bytes_across.ts";
import { paintImage, rasterFor } from "./image.ts";
import { Plot } from "./plot.ts";
import type { Selection } from "./selection.ts";
import { blockPalette, CACHED_COLOUR } from "./theme.ts";
import type { Tooltip } from "./tooltip.ts";

const TALLEST_ROW_PX = 40;
const SHORTEST_ROW_PX = 14;
const COMFORTABLE_HEIGHT_PX = 360;
const BAR_SHARE = 0.8;

interface MomentPieces {
  readonly segments: readonly SegmentAtMoment[];
  readonly pieces: readonly BarPiece[];
  readonly rows: number;
  readonly widthBytes: number;
}

/** One bar for each segment at the chosen moment, with the blocks and the free space in it. */
export function momentView(
  parent: HTMLElement,
  frames: Frames,
  timeline: DeviceTimeline,
  selection: Selection,
  categories: Signal<Categories>,
  describe: Descriptions,
  tooltip: Tooltip,
): Plot {
  const plot = new Plot(parent, frames, {
    label: "Segments at the moment shown. Arrow keys walk through the blocks.",
    heightPx: COMFORTABLE_HEIGHT_PX,
    marginsPx: { left: 16, right: 16, top: 8, bottom: 42 },
  });
  let moment = piecesAfter(timeline, selection.momentRow.value);
  let raster = createRaster(1, 1);
  const refresh = (): void => {
    moment = piecesAfter(timeline, selection.momentRow.value);
    const rowPx = COMFORTABLE_HEIGHT_PX / Math.max(moment.rows, 1);
    const clamped = Math.min(Math.max(rowPx, SHORTEST_ROW_PX), TALLEST_ROW_PX);
    plot.setHeight(Math.round(clamped * Math.max(moment.rows, 1)) + 50);
    plot.redraw();
  };
  plot.onDraw(
    (drawing) => {
      const { theme } = drawing;
      raster = rasterFor(drawing);
      const viewport = {
        left: 0,
        right: moment.widthBytes,
        top: 0,
        bottom: Math.max(moment.rows, 1),
      };
      const rects = pieceRects(
        moment,
        timeline,
        categories.value,
        selection.momentRow.value,
      );
      paintRects(raster, rects, viewport, blockPalette(theme));
      paintImage(drawing, raster);
      drawBytesAcross(drawing, moment.widthBytes);
    },
    () => undefined,
  );
  addHover(
    plot,
    () => raster,
    () => moment,
    describe,
    tooltip,
  );
  plot.scope.defer(selection.momentRow.subscribe(refresh));
  plot.scope.defer(categories.subscribe(() => plot.redraw()));
  refresh();
  return plot;
}

function piecesAfter(timeline: DeviceTimeline, row: number): MomentPieces {
  const { events, blocks } = timeline;
  const segments = segmentsAfter(events, timeline.segments, blocks, row);
  const layout = packBars(segments);
  const pieces = barPieces(segments, layout, blocks);
  return { segments, pieces, rows: layout.rows, widthBytes: layout.widthBytes };
}

function pieceRects(
  moment: MomentPieces,
  timeline: DeviceTimeline,
  categories: Categories,
  row: number,
): Rects {
  const { pieces } = moment;
  return {
    count: pieces.length,
    left: Float64Array.from(pieces, (piece) => piece.from),
    right: Float64Array.from(pieces, (piece) => piece.to),
    top: Float64Array.from(pieces, (piece) => piece.row + (1 - BAR_SHARE) / 2),
    bottom: Float64Array.from(
      pieces,
      (piece) => piece.row + (1 + BAR_SHARE) / 2,
    ),
    colour: Uint8Array.from(pieces, ({ block }) =>
      block === undefined
        ? CACHED_COLOUR
        : (categories.ofBlock[block] ?? COLOURED),
    ),
    striped: Uint8Array.from(pieces, ({ block }) =>
      block !== undefined && isPendingAfter(timeline.blocks, block, row)
        ? 1
        : 0,
    ),
  };
}

function addHover(
  plot: Plot,
  raster: () => Raster,
  moment: () => MomentPieces,
  describe: Descriptions,
  tooltip: Tooltip,
): void {
  let walked = -1;
  const linesOf = (piece: BarPiece): string[] => {
    const origin = moment().segments[piece.segment]?.origin ?? 0;
    return piece.block === undefined
      ? describe.gap(origin, piece.address, piece.to - piece.from)
      : describe.block(piece.block);
  };
  plot.scope.listen(plot.host, "pointermove", (event) => {
    const ratio = raster().width / plot.area.width;
    const x = (event.offsetX - plot.area.left) * ratio;
    const y = (event.offsetY - plot.area.top) * ratio;
    const piece = moment().pieces[rectAt(raster(), x, y) ?? -1];
    if (piece === undefined) {
      tooltip.hide();
    } else {
      tooltip.show(linesOf(piece), event.clientX, event.clientY);
    }
  });
  for (const leave of ["pointerleave", "blur"] as const) {
    plot.scope.listen(plot.host, leave, () => {
      tooltip.hide();
    });
  }
  plot.scope.listen(plot.host, "keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") {
      return;
    }
    event.preventDefault();
    const { pieces, rows, widthBytes } = moment();
    walked = Math.min(
      Math.max(walked + (event.key === "ArrowLeft" ? -1 : 1), 0),
      pieces.length - 1,
    );
    const piece = pieces[walked];
    if (piece !== undefined) {
      const { left, top, width, height } = plot.area;
      const box = plot.host.getBoundingClientRect();
      const x =
        box.left + left + (width * (piece.from + piece.to)) / 2 / widthBytes;
      const y = box.top + top + (height * (piece.row + 0.5)) / rows;
      tooltip.show(linesOf(piece), x, y);
    }
  });
}
