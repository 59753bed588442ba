import type { Scope } from "../base/scope.ts";
import type { Lane } from "../model/lanes.ts";
import { SPAN_KINDS, SpanKind } from "../model/span_kinds.ts";
import { paintLane } from "../render/lane_raster.ts";
import { createRaster } from "../render/raster.ts";
import type { ChartContext } from "./chart_context.ts";
import { context2d, element } from "./dom.ts";
import { lanePalette, themeOf } from "./theme.ts";

const KEY_WIDTH_PX = 26;
const KEY_HEIGHT_PX = 14;

/** Names the colours and signs of the kinds of spans that there are. */
export function kindsLegend(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const list = element("ul", "gpuviz-legend");
  parent.append(list);
  let drawn = "";
  const draw = (): void => {
    drawn = contentsOf(chart);
    const kinds = [...kindsIn(chart.lanes), ...(chart.showsIdle.value ? [SpanKind.idle] : [])];
    list.replaceChildren(...kinds.map((kind) => kindEntry(kind, list)));
    if (chart.gpu.streamWaits.count > 0) {
      const arrow = element("span", "gpuviz-key gpuviz-key--arrow", "➔");
      const item = element("li", "gpuviz-legend__entry");
      item.append(arrow, "waited for an event");
      list.append(item);
    }
  };
  scope.follow(draw, chart.showsIdle);
  scope.defer(chart.frames.add(draw));
  scope.watch(() => {
    if (contentsOf(chart) !== drawn) {
      draw();
    }
  }, chart.revision);
}

function contentsOf({ lanes, gpu }: ChartContext): string {
  return `${kindsIn(lanes).join()} ${gpu.streamWaits.count > 0}`;
}

function kindEntry(kind: number, host: HTMLElement): HTMLElement {
  const item = element("li", "gpuviz-legend__entry");
  const key = element("canvas", "gpuviz-key gpuviz-key--drawn");
  drawKey(key, kind, host);
  item.append(key, SPAN_KINDS[kind] ?? "");
  return item;
}

function kindsIn(lanes: readonly Lane[]): number[] {
  const found = new Set<number>();
  for (const { stack } of lanes) {
    for (const { kinds } of stack.rows) {
      kinds.forEach((code) => found.add(code));
    }
  }
  return [...found].sort((left, right) => left - right);
}

function drawKey(key: HTMLCanvasElement, kind: number, host: HTMLElement): void {
  const raster = createRaster(KEY_WIDTH_PX, KEY_HEIGHT_PX);
  const columns = { length: KEY_WIDTH_PX };
  const strip = {
    fromY: 0,
    toY: KEY_HEIGHT_PX,
    share: Array.from(columns, () => 1),
    span: Array.from(columns, () => 0),
    kind: [kind],
    firstId: 0,
  };
  paintLane(raster, strip, lanePalette(themeOf(host)));
  key.width = KEY_WIDTH_PX;
  key.height = KEY_HEIGHT_PX;
  const pixels = new Uint8ClampedArray(raster.pixels.buffer);
  context2d(key).putImageData(new ImageData(pixels, KEY_WIDTH_PX, KEY_HEIGHT_PX), 0, 0);
}
