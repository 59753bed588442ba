import type { Scale } from "../base/scale.ts";
import type { Signal } from "../base/signal.ts";
import { COLOURED, type Categories } from "../model/categories.ts";
import type { Descriptions } from "../model/description.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { RectKind } from "../model/map_rects.ts";
import {
  createRaster,
  paintRects,
  rectAt,
  type Raster,
  type Rects,
} from "../render/raster.ts";
import { drawByteAxis, drawTimeAxis } from "./axes.ts";
import { drawCursor, drawMark, drawMoment } from "./cursor.ts";
import type { Frames } from "./frames.ts";
import { addTimeGestures } from "./gestures.ts";
import { paintImage } from "./image.ts";
import { Plot } from "./plot.ts";
import type { Selection } from "./selection.ts";
import { blockPalette, CACHED_COLOUR } from "./theme.ts";
import type { Tooltip } from "./tooltip.ts";

const HEIGHT_PX = 420;

/** Blocks over time at their addresses. */
export function mapView(
  parent: HTMLElement,
  frames: Frames,
  timeline: DeviceTimeline,
  selection: Selection,
  categories: Signal<Categories>,
  describe: Descriptions,
  tooltip: Tooltip,
): Plot {
  const plot = new Plot(parent, frames, {
    label:
      "Segment map over time. Arrow keys move the cursor, Enter chooses the moment.",
    heightPx: HEIGHT_PX,
    marginsPx: { left: 84, right: 16, top: 26, bottom: 42 },
  });
  const timeScale = (): Scale => {
    const { fromNs, toNs } = selection.window.range.value;
    return {
      from: fromNs,
      to: toNs,
      fromPx: plot.area.left,
      toPx: plot.area.left + plot.area.width,
    };
  };
  const gestures = addTimeGestures(plot, selection, timeScale, (timeNs) => {
    selection.momentRow.value = timeline.rowAt(timeNs);
  });
  let raster: Raster = createRaster(1, 1);
  plot.onDraw(
    (drawing) => {
      const { area, pixelRatio, theme } = drawing;
      const total = Math.max(timeline.layout.totalBytes, 1);
      const byteScale = {
        from: 0,
        to: total,
        fromPx: area.top + area.height,
        toPx: area.top,
      };
      raster = createRaster(
        Math.max(Math.round(area.width * pixelRatio), 1),
        Math.max(Math.round(area.height * pixelRatio), 1),
      );
      const { from, to } = timeScale();
      const viewport = { left: from, right: to, top: total, bottom: 0 };
      drawByteAxis(
        drawing,
        byteScale,
        "reserved addresses, stacked without gaps",
      );
      drawTimeAxis(drawing, timeScale(), "time since the recording began");
      paintRects(
        raster,
        mapColours(timeline, categories.value),
        viewport,
        blockPalette(theme),
      );
      paintImage(drawing, raster);
    },
    (drawing) => {
      drawMoment(
        drawing,
        timeScale(),
        timeline.events.timeNs[selection.momentRow.value] ?? 0,
      );
      drawCursor(drawing, timeScale(), selection.cursorNs.value);
      drawMark(drawing, gestures.marked.value);
    },
  );
  addHover(plot, () => raster, timeline, describe, tooltip);
  for (const changed of [selection.window.range, categories]) {
    plot.scope.defer(changed.subscribe(() => plot.redraw()));
  }
  for (const changed of [
    selection.cursorNs,
    selection.momentRow,
    gestures.marked,
  ]) {
    plot.scope.defer(changed.subscribe(() => plot.redrawOverlay()));
  }
  return plot;
}

/** The rectangles with the colours of a grouping. */
function mapColours(timeline: DeviceTimeline, categories: Categories): Rects {
  const { count, fromNs, toNs, fromByte, toByte, kind, owner } = timeline.rects;
  const colour = new Uint8Array(count);
  const striped = new Uint8Array(count);
  for (let rect = 0; rect < count; rect += 1) {
    const isSegment = kind[rect] === RectKind.segment;
    const group = categories.ofBlock[owner[rect] ?? 0] ?? COLOURED;
    colour[rect] = isSegment ? CACHED_COLOUR : group;
    striped[rect] = kind[rect] === RectKind.pending ? 1 : 0;
  }
  return {
    count,
    left: fromNs,
    right: toNs,
    top: toByte,
    bottom: fromByte,
    colour,
    striped,
  };
}

function addHover(
  plot: Plot,
  raster: () => Raster,
  timeline: DeviceTimeline,
  describe: Descriptions,
  tooltip: Tooltip,
): void {
  const { rects, segments } = timeline;
  plot.scope.listen(plot.host, "pointermove", (event) => {
    const ratio = raster().width / plot.area.width;
    const x = (event.offsetX - plot.area.left) * ratio;
    const y = (event.offsetY - plot.area.top) * ratio;
    const rect = rectAt(raster(), x, y);
    if (rect === undefined) {
      tooltip.hide();
      return;
    }
    const owner = rects.owner[rect] ?? 0;
    const lines =
      rects.kind[rect] === RectKind.segment
        ? describe.segment(
            segments.begun[owner] ?? 0,
            segments.from[owner] ?? 0,
            segments.to[owner] ?? 0,
          )
        : describe.block(owner);
    tooltip.show(lines, event.clientX, event.clientY);
  });
  plot.scope.listen(plot.host, "pointerleave", () => {
    tooltip.hide();
  });
}
