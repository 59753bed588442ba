import { toPixel, type Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import type { Selected } from "../model/selected.ts";
import { createRaster, findRect, paintRects, type Viewport } from "../render/raster.ts";
import { drawByteAxis, scaleUp } from "./axes.ts";
import type { ChartContext } from "./chart_context.ts";
import { paintImage, rasterFor } from "./image.ts";
import { drawHighlighted } from "./highlighted_marks.ts";
import { MapPlaces, type MapLayers } from "./map_layers.ts";
import { drawBlockNames } from "./map_names.ts";
import type { Drawing, PlotArea } from "./plot.ts";
import { blockPalette } from "./theme.ts";
import { timePlot } from "./time_plot.ts";

const OPTIONS = {
  label: "Segment map over time. Arrow keys move the cursor, Enter chooses the moment.",
  heightPx: 300,
  topPx: 22,
};

/** What the pointer is at in the map: a block, or what is free of a segment. */
type MapPlace =
  | { readonly kind: "block"; readonly block: number }
  | { readonly kind: "segment"; readonly segment: number };

/** Blocks over time at their addresses. */
export function mapView(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { categories } = chart.grouping;
  const bytesIn = (area: PlotArea): Scale =>
    scaleUp(area, Math.max(chart.timeline.layout.totalBytes, 1));
  const places = new MapPlaces();
  let raster = createRaster(1, 1);
  let painted: { readonly layers: MapLayers; readonly viewport: Viewport } | undefined;
  const draw = (drawing: Drawing, time: Scale): void => {
    const bytes = bytesIn(drawing.area);
    drawByteAxis(drawing, bytes);
    raster = rasterFor(drawing, raster);
    const palette = blockPalette(drawing.theme, categories.value.isOrdered);
    const layers = places.layers(chart.timeline, categories.value, palette, raster.height);
    const viewport = { left: time.from, right: time.to };
    paintRects(raster, [layers.segments, layers.blocks, layers.pending], viewport);
    paintImage(drawing, raster);
    drawBlockNames(drawing, chart.timeline, categories.value, time, bytes);
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
  const plot = timePlot(scope, parent, chart, OPTIONS, {
    draw,
    drawHighlighted: (drawing, time) =>
      drawHighlighted(drawing, highlightedBlocks(chart, time, bytesIn(drawing.area))),
    pick: (x, y): Selected | undefined => {
      const place = placeAt(x, y);
      return place?.kind === "block" ? place : undefined;
    },
  });
  chart.tooltip.attach(scope, plot.host, (x, y) => {
    const place = placeAt(x, y);
    return place && linesAbout(place, chart);
  });
  scope.watch(() => plot.redraw(), categories);
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

function highlightedBlocks(
  { timeline, selection }: ChartContext,
  time: Scale,
  bytes: Scale,
): PlotArea[] {
  const { blocks, layout, events } = timeline;
  return [...selection.highlighted.value.blocks].map((block) => {
    const from = layout.offsetOf(blocks.address[block] ?? 0);
    const ended = events.timeNs[blocks.freeCompleted[block] ?? -1] ?? timeline.endNs;
    const left = toPixel(time, blocks.fromNs[block] ?? 0);
    const top = toPixel(bytes, from + (blocks.size[block] ?? 0));
    const width = toPixel(time, ended) - left;
    return { left, top, width, height: toPixel(bytes, from) - top };
  });
}

function linesAbout(place: MapPlace, { describe, timeline }: ChartContext): string[] {
  if (place.kind === "block") {
    return describe.block(place.block);
  }
  const { begun, from, to } = timeline.segments;
  const { segment } = place;
  return describe.segment(begun[segment] ?? 0, from[segment] ?? 0, to[segment] ?? 0);
}
