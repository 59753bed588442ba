import { toPixel, type Scale } from "../base/scale.ts";
import type { Picked } from "../model/picked.ts";
import { createRaster, findRect, paintRects, type Viewport } from "../render/raster.ts";
import { drawByteAxis } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { paintImage, rasterFor } from "./image.ts";
import { drawLit, type LitBox } from "./lit_marks.ts";
import { MapPlaces, type MapLayers } from "./map_layers.ts";
import { TIME_MARGINS_PX } from "./margins.ts";
import type { Drawing, Plot, PlotArea } from "./plot.ts";
import { blockPalette } from "./theme.ts";
import { timePlot } from "./time_plot.ts";

const OPTIONS = {
  label: "Segment map over time. Arrow keys move the cursor, Enter chooses the moment.",
  heightPx: 430,
  marginsPx: { ...TIME_MARGINS_PX, top: 26, bottom: 42 },
};

/** What the pointer is at in the map: a block, or what is free of a segment. */
type MapPlace =
  | { readonly kind: "block"; readonly block: number }
  | { readonly kind: "segment"; readonly segment: number };

/** Blocks over time at their addresses. */
export function mapView(parent: HTMLElement, chart: ChartContext): Plot {
  const { categories } = chart.grouping;
  const totalBytes = (): number => Math.max(chart.timeline.layout.totalBytes, 1);
  const places = new MapPlaces();
  let raster = createRaster(1, 1);
  let painted: { readonly layers: MapLayers; readonly viewport: Viewport } | undefined;
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
    const palette = blockPalette(drawing.theme);
    const layers = places.layers(chart.timeline, categories.value, palette, raster.height);
    const viewport = { left: time.from, right: time.to };
    paintRects(raster, [layers.segments, layers.blocks, layers.pending], viewport);
    paintImage(drawing, raster);
    painted = { layers, viewport };
  };
  const placeAt = (x: number, y: number): MapPlace | undefined => {
    const ratio = raster.width / plot.area.width;
    const [column, row] = [(x - plot.area.left) * ratio, (y - plot.area.top) * ratio];
    const isInside = column >= 0 && row >= 0 && column < raster.width && row < raster.height;
    if (painted === undefined || !isInside) {
      return undefined;
    }
    const { layers, viewport } = painted;
    return placeIn(layers, chart.timeline.blocks.pending.block, (rects) =>
      findRect(rects, viewport, raster.width, column, row),
    );
  };
  const plot = timePlot(parent, chart, OPTIONS, {
    draw,
    drawLit: (drawing, time) => {
      drawLit(drawing, litBlocks(chart, time, bytesIn(drawing.area)));
    },
    pick: (x, y): Picked | undefined => {
      const place = placeAt(x, y);
      return place?.kind === "block" ? place : undefined;
    },
  });
  addHover(plot, placeAt, chart);
  plot.scope.defer(categories.subscribe(() => plot.redraw()));
  return plot;
}

/** What is in front at a place, given a search in one layer. */
function placeIn(
  { segments, blocks, pending }: MapLayers,
  blockOfPending: ArrayLike<number>,
  find: (rects: MapLayers[keyof MapLayers]) => number | undefined,
): MapPlace | undefined {
  const freed = find(pending);
  const block = freed === undefined ? find(blocks) : blockOfPending[freed];
  if (block !== undefined) {
    return { kind: "block", block };
  }
  const segment = find(segments);
  return segment === undefined ? undefined : { kind: "segment", segment };
}

function litBlocks({ timeline, selection }: ChartContext, time: Scale, bytes: Scale): LitBox[] {
  const { blocks, layout, events } = timeline;
  return [...selection.lit.value.blocks].map((block) => {
    const from = layout.offsetOf(blocks.address[block] ?? 0);
    const ended = events.timeNs[blocks.freeCompleted[block] ?? -1] ?? timeline.endNs;
    const leftPx = toPixel(time, blocks.fromNs[block] ?? 0);
    const topPx = toPixel(bytes, from + (blocks.size[block] ?? 0));
    const widthPx = toPixel(time, ended) - leftPx;
    return { leftPx, topPx, widthPx, heightPx: toPixel(bytes, from) - topPx };
  });
}

function addHover(
  plot: Plot,
  placeAt: (x: number, y: number) => MapPlace | undefined,
  chart: ChartContext,
): void {
  const { tooltip } = chart;
  plot.scope.listen(plot.host, "pointermove", (event) => {
    const place = placeAt(event.offsetX, event.offsetY);
    if (place === undefined) {
      tooltip.hide();
      return;
    }
    const { describe } = chart;
    const { segments } = chart.timeline;
    const lines =
      place.kind === "segment"
        ? describe.segment(
            segments.begun[place.segment] ?? 0,
            segments.from[place.segment] ?? 0,
            segments.to[place.segment] ?? 0,
          )
        : describe.block(place.block);
    tooltip.show(lines, event.clientX, event.clientY);
  });
  plot.scope.listen(plot.host, "pointerleave", () => {
    tooltip.hide();
  });
}
