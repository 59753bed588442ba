import { toPixel, type Scale } from "../base/scale.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { RectKind } from "../model/map_rects.ts";
import type { Picked } from "../model/picked.ts";
import { createRaster, paintIds, paintRects, rectAt, type Viewport } from "../render/raster.ts";
import { drawByteAxis } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { addHover } from "./hover.ts";
import { paintImage, rasterFor } from "./image.ts";
import { drawLit, type LitBox } from "./lit_marks.ts";
import { mapColours } from "./map_colours.ts";
import { drawBlockNames } from "./map_names.ts";
import { TIME_MARGINS_PX } from "./margins.ts";
import type { Drawing, Plot, PlotArea } from "./plot.ts";
import { blockPalette } from "./theme.ts";
import { timePlot } from "./time_plot.ts";

const OPTIONS = {
  label: "Segment map over time. Arrow keys move the cursor, Enter chooses the moment.",
  heightPx: 430,
  marginsPx: { ...TIME_MARGINS_PX, top: 26, bottom: 42 },
};

/** Blocks over time at their addresses. */
export function mapView(parent: HTMLElement, chart: ChartContext): Plot {
  const { categories } = chart.grouping;
  const totalBytes = (): number => Math.max(chart.timeline.layout.totalBytes, 1);
  let raster = createRaster(1, 1);
  // Ids are painted when the pointer first asks for one: a redraw while zooming needs none.
  let withoutIds: Viewport | undefined;
  let rects = mapColours(chart.timeline, categories.value);
  const bytesIn = ({ top, height }: PlotArea): Scale => ({
    from: 0,
    to: totalBytes(),
    fromPx: top + height,
    toPx: top,
  });
  const draw = (drawing: Drawing, time: Scale): void => {
    const bytes = bytesIn(drawing.area);
    drawByteAxis(drawing, bytes, "addresses, stacked without gaps");
    raster = rasterFor(drawing, raster);
    const viewport = {
      left: time.from,
      right: time.to,
      top: totalBytes(),
      bottom: 0,
    };
    paintRects(raster, rects, viewport, blockPalette(drawing.theme, categories.value.isOrdered));
    paintImage(drawing, raster);
    drawBlockNames(drawing, chart.timeline.rects, rects, categories.value, time, bytes);
    withoutIds = viewport;
  };
  const rectNear = (x: number, y: number): number | undefined => {
    if (withoutIds !== undefined) {
      paintIds(raster, rects, withoutIds);
      withoutIds = undefined;
    }
    const ratio = raster.width / plot.area.width;
    return rectAt(raster, (x - plot.area.left) * ratio, (y - plot.area.top) * ratio);
  };
  const plot = timePlot(parent, chart, OPTIONS, {
    draw,
    drawLit: (drawing, time) => {
      drawLit(drawing, litRects(chart, time, bytesIn(drawing.area)));
    },
    pick: (x, y) => pickedRect(chart.timeline, rectNear(x, y)),
  });
  addHover(plot, chart.tooltip, (x, y) => {
    const rect = rectNear(x, y);
    return rect === undefined ? undefined : linesAbout(rect, chart);
  });
  plot.scope.defer(
    categories.subscribe(() => {
      rects = mapColours(chart.timeline, categories.value);
      plot.redraw();
    }),
  );
  return plot;
}

function pickedRect(timeline: DeviceTimeline, rect: number | undefined): Picked | undefined {
  const { kind, owner } = timeline.rects;
  const isBlock = rect !== undefined && kind[rect] !== RectKind.segment;
  return isBlock ? { kind: "block", block: owner[rect] ?? 0 } : undefined;
}

function litRects({ timeline, selection }: ChartContext, time: Scale, bytes: Scale): LitBox[] {
  const { count, fromNs, toNs, fromByte, toByte, kind, owner } = timeline.rects;
  const { blocks } = selection.lit.value;
  const boxes: LitBox[] = [];
  for (let rect = blocks.size === 0 ? count : 0; rect < count; rect += 1) {
    if (kind[rect] !== RectKind.segment && blocks.has(owner[rect] ?? -1)) {
      const leftPx = toPixel(time, fromNs[rect] ?? 0);
      const topPx = toPixel(bytes, toByte[rect] ?? 0);
      const widthPx = toPixel(time, toNs[rect] ?? 0) - leftPx;
      const heightPx = toPixel(bytes, fromByte[rect] ?? 0) - topPx;
      boxes.push({ leftPx, topPx, widthPx, heightPx });
    }
  }
  return boxes;
}

function linesAbout(rect: number, { describe, timeline }: ChartContext): string[] {
  const { kind, owner } = timeline.rects;
  const of = owner[rect] ?? 0;
  if (kind[rect] !== RectKind.segment) {
    return describe.block(of);
  }
  const { begun, from, to } = timeline.segments;
  return describe.segment(begun[of] ?? 0, from[of] ?? 0, to[of] ?? 0);
}
