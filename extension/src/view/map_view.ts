import { COLOURED, type Categories } from "../model/categories.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { RectKind } from "../model/map_rects.ts";
import { createRaster, paintRects, rectAt, type Raster, type Rects } from "../render/raster.ts";
import { drawByteAxis } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { paintImage, rasterFor } from "./image.ts";
import { TIME_MARGINS_PX } from "./margins.ts";
import type { Plot } from "./plot.ts";
import { blockPalette, CACHED_COLOUR } from "./theme.ts";
import { timePlot } from "./time_plot.ts";

const OPTIONS = {
  label: "Segment map over time. Arrow keys move the cursor, Enter chooses the moment.",
  heightPx: 430,
  marginsPx: { ...TIME_MARGINS_PX, top: 26, bottom: 42 },
};

/** Blocks over time at their addresses. */
export function mapView(parent: HTMLElement, chart: ChartContext): Plot {
  const { timeline, categories } = chart;
  const totalBytes = Math.max(timeline.layout.totalBytes, 1);
  let raster = createRaster(1, 1);
  const plot = timePlot(parent, chart, OPTIONS, (drawing, time) => {
    const { area, theme } = drawing;
    const bytes = {
      from: 0,
      to: totalBytes,
      fromPx: area.top + area.height,
      toPx: area.top,
    };
    drawByteAxis(drawing, bytes, "addresses, stacked without gaps");
    raster = rasterFor(drawing);
    const viewport = {
      left: time.from,
      right: time.to,
      top: totalBytes,
      bottom: 0,
    };
    paintRects(raster, mapColours(timeline, categories.value), viewport, blockPalette(theme));
    paintImage(drawing, raster);
  });
  addHover(plot, () => raster, chart);
  plot.scope.defer(categories.subscribe(() => plot.redraw()));
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
    backdrop: timeline.segments.count,
    left: fromNs,
    right: toNs,
    top: toByte,
    bottom: fromByte,
    colour,
    striped,
  };
}

function addHover(plot: Plot, raster: () => Raster, chart: ChartContext): void {
  const { timeline, describe, tooltip } = chart;
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
