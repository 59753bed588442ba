import { isCopy, SpanKind } from "../model/span_kinds.ts";
import type { GpuDescriptions } from "../model/gpu_description.ts";
import type { IdleLane } from "../model/idle_gaps.ts";
import type { Raster } from "../render/raster.ts";
import { setText } from "./axes.ts";
import { cutText } from "./lane_frames.ts";
import type { LaneLayout, PlacedRow } from "./lane_layout.ts";
import type { Drawing } from "./plot.ts";
import { inkOn } from "./theme.ts";

const NARROWEST_PX = 34;
const LOWEST_ROW_PX = 12;
const PADDING_PX = 4;
const LINE_PX = 13;
/** Of a part of a name that does not fit, less is not shown. */
const LEAST_PART_PX = 80;
/** A comma between parts, but not within code. */
const OUTSIDE_CODE = /, (?=(?:[^`]*`[^`]*`)*[^`]*$)/;

/** The names of spans that are wide enough for them, as the raster shows them. */
export function drawSpanNames(
  drawing: Drawing,
  layout: LaneLayout,
  raster: Raster,
  describe: GpuDescriptions,
  idleOf: (stream: number | undefined) => IdleLane | undefined,
): void {
  setText(drawing.context, "left", "11px");
  for (const { lane, rows } of layout.lanes) {
    for (const placed of rows) {
      if (placed.heightPx >= LOWEST_ROW_PX) {
        drawRowNames(drawing, placed, raster, describe, idleOf(lane.stream));
      }
    }
  }
}

function drawRowNames(
  drawing: Drawing,
  placed: PlacedRow,
  raster: Raster,
  describe: GpuDescriptions,
  idle: IdleLane | undefined,
): void {
  const { area, context, pixelRatio } = drawing;
  const middlePx = placed.topPx + placed.heightPx / 2;
  const line = Math.floor(middlePx * pixelRatio) * raster.width;
  for (let x = 0; x < raster.width;) {
    const id = raster.ids[line + x] ?? 0;
    const begin = x;
    while (x < raster.width && (raster.ids[line + x] ?? 0) === id) {
      x += 1;
    }
    const widthPx = (x - begin) / pixelRatio;
    const span = id - 1 - placed.firstId;
    if (span >= 0 && span < placed.row.count && widthPx >= NARROWEST_PX) {
      const name = fittingName(
        drawing,
        describe.shortName(placed.row, span, idle),
        placed.row.kind[span] ?? 0,
        widthPx - 2 * PADDING_PX,
      );
      const kind = placed.row.kind[span] ?? 0;
      const left = area.left + begin / pixelRatio + PADDING_PX;
      const top = area.top + middlePx;
      if (kind === SpanKind.idle) {
        context.fillStyle = drawing.theme.ground;
        const width = context.measureText(name).width;
        context.fillRect(left - 2, top - LINE_PX / 2, width === 0 ? 0 : width + 4, LINE_PX);
      }
      const isIdle = kind === SpanKind.idle;
      const { text, spans } = drawing.theme;
      const place = describe.palettePlaces(placed.row)(span);
      context.fillStyle = isIdle ? text : inkOn(spans[place] ?? "");
      context.fillText(name, left, top + 0.5);
    }
  }
}

/**
 * A name cut where it is too long.
 *
 * A copy is then called by its direction alone, and of an idle gap as many parts are shown as fit.
 */
function fittingName({ context }: Drawing, name: string, kind: number, widthPx: number): string {
  const fits = (text: string): boolean => context.measureText(text).width <= widthPx;
  if (kind === SpanKind.idle) {
    const parts = name.split(OUTSIDE_CODE).map((part) => part.replaceAll("`", ""));
    const texts = parts.map((_, dropped) => parts.slice(0, parts.length - dropped).join(", "));
    const [whole = ""] = texts;
    const text = texts.find(fits) ?? "";
    const isRoomLeft = text !== "" && context.measureText(text).width + LEAST_PART_PX <= widthPx;
    return text !== whole && isRoomLeft ? cutText(context, whole, widthPx) : text;
  }
  const direction = name.slice(0, Math.max(name.indexOf(" "), 0));
  return !fits(name) && isCopy(kind) ? direction : cutText(context, name, widthPx);
}
