import type { Scope } from "../base/scope.ts";
import type { Lane } from "../model/lanes.ts";
import { KERNEL_SHADES, SPAN_KINDS, SpanKind } from "../model/span_kinds.ts";
import { paintLane } from "../render/lane_raster.ts";
import { createRaster } from "../render/raster.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { canvasOf } from "./image.ts";
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
    const kinds = kindsShown(chart);
    list.replaceChildren(...kinds.map((kind) => kindEntry(kind, list)));
    if (chart.gpu.streamWaits.count > 0) {
      const arrow = element("span", "gpuviz-key gpuviz-key--arrow", "➔");
      const item = element("li", "gpuviz-legend__entry");
      item.append(arrow, "waited for an event");
      list.append(item);
    }
  };
  draw();
  scope.defer(chart.frames.add(draw));
  scope.watch(() => {
    if (contentsOf(chart) !== drawn) {
      draw();
    }
  }, chart.revision);
}

function contentsOf(chart: ChartContext): string {
  return `${kindsShown(chart).join()} ${chart.gpu.streamWaits.count > 0}`;
}

function kindsShown(chart: ChartContext): number[] {
  const hasIdle = (chart.idleOf()?.gaps.count ?? 0) > 0;
  return [...kindsIn(chart.lanes), ...(hasIdle ? [SpanKind.idle] : [])];
}

function kindEntry(kind: number, host: HTMLElement): HTMLElement {
  const item = element("li", "gpuviz-legend__entry");
  item.append(keyOf(kind, host), SPAN_KINDS[kind] ?? "");
  return item;
}

function kindsIn(lanes: readonly Lane[]): number[] {
  const found = lanes.flatMap(({ stack }) => stack.rows.flatMap(({ kinds }) => [...kinds]));
  return [...new Set(found)].sort((left, right) => left - right);
}

function keyOf(kind: number, host: HTMLElement): HTMLCanvasElement {
  const raster = createRaster(KEY_WIDTH_PX, KEY_HEIGHT_PX);
  const width = KEY_WIDTH_PX;
  const columns = { length: width };
  const isKernel = kind === SpanKind.kernel;
  const strip = {
    fromY: 0,
    toY: KEY_HEIGHT_PX,
    share: Array.from(columns, () => 1),
    span: Array.from(columns, (_, x) => (isKernel ? Math.floor((x * KERNEL_SHADES) / width) : 0)),
    placeOf: (span: number) => (isKernel ? SPAN_KINDS.length + span : kind),
    firstId: 0,
  };
  paintLane(raster, strip, lanePalette(themeOf(host)));
  return canvasOf(raster, "gpuviz-key gpuviz-key--drawn");
}
