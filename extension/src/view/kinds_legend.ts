import type { Scope } from "../base/scope.ts";
import { KERNEL_SHADES, SPAN_KINDS, SpanKind } from "../model/span_kinds.ts";
import { paintLane } from "../render/lane_raster.ts";
import { createRaster } from "../render/raster.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";
import { canvasOf } from "./image.ts";
import { lanePalette, themeOf } from "./theme.ts";

const KEY_WIDTH_PX = 26;
const KEY_HEIGHT_PX = 14;

/** Names the colours and signs of the kinds of spans that there are, and of arrows. */
export function kindsLegend(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const list = element("ul", "gpuviz-legend");
  parent.append(list);
  let drawn = "";
  const draw = (): void => {
    const entries = entriesOf(chart);
    drawn = String(entries);
    list.replaceChildren(
      ...entries.map(([name, key]) => {
        const item = element("li", "gpuviz-legend__entry");
        item.append(typeof key === "number" ? keyOf(key, list) : arrowKey(key), name);
        return item;
      }),
    );
  };
  draw();
  scope.defer(chart.frames.add(draw));
  scope.watch(
    () => {
      if (String(entriesOf(chart)) !== drawn) {
        draw();
      }
    },
    chart.revision,
    chart.hazards,
  );
}

/** Each with its kind of spans, or with the class of its arrow. */
function entriesOf(chart: ChartContext): (readonly [name: string, key: number | string])[] {
  const found = chart.lanes.flatMap(({ stack }) => stack.rows.flatMap(({ kinds }) => [...kinds]));
  const kinds = [...new Set(found)].sort((left, right) => left - right);
  if ((chart.idleOf()?.gaps.count ?? 0) > 0) {
    kinds.push(SpanKind.idle);
  }
  const entries: [string, number | string][] = kinds.map((kind) => [SPAN_KINDS[kind] ?? "", kind]);
  if (chart.gpu.streamWaits.count > 0) {
    entries.push(["waited for an event", ""]);
  }
  if (chart.gpu.peerCopies.count > 0) {
    entries.push(["copied to another GPU", "gpuviz-key--copy"]);
  }
  if (chart.hazards.value.length > 0) {
    entries.push(["same memory, no order", "gpuviz-key--alarm"]);
  }
  return entries;
}

function arrowKey(kind: string): HTMLElement {
  return element("span", `gpuviz-key gpuviz-key--arrow ${kind}`, "➔");
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
