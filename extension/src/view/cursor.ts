import { toPixel, type Scale } from "../base/scale.ts";
import { formatTime } from "../base/format.ts";
import { line, setText, timeLabels } from "./axes.ts";
import type { Drawing } from "./plot.ts";

/** Dims what is outside the span that a reader has selected, unless something else is shown. */
export function drawMeasured(
  drawing: Drawing,
  time: Scale,
  measured: { readonly fromNs: number; readonly toNs: number } | undefined,
  isDimmed: boolean,
): void {
  if (measured !== undefined) {
    const { context, area, theme } = drawing;
    const right = area.left + area.width;
    const from = Math.min(Math.max(toPixel(time, measured.fromNs), area.left), right);
    const to = Math.min(Math.max(toPixel(time, measured.toNs), area.left), right);
    if (isDimmed) {
      context.globalAlpha = OUTSIDE;
      context.fillStyle = theme.background;
      context.fillRect(area.left, area.top, from - area.left, area.height);
      context.fillRect(to, area.top, right - to, area.height);
      context.globalAlpha = 1;
    }
    vertical(drawing, time, measured.fromNs, theme.text, [6, 2]);
    vertical(drawing, time, measured.toNs, theme.text, [6, 2]);
  }
}

const OUTSIDE = 0.55;
const EXTENT_PX = 4;

/** A line through the plot where the pointer is. */
export function drawCursor(drawing: Drawing, time: Scale, cursorNs: number | undefined): void {
  if (cursorNs !== undefined) {
    vertical(drawing, time, cursorNs, drawing.theme.text, [3, 3]);
  }
}

/** A line through the plot at the chosen moment. */
export function drawMoment(drawing: Drawing, time: Scale, momentNs: number): void {
  vertical(drawing, time, momentNs, drawing.theme.accent, []);
}

/** A label on the time axis at the cursor or the chosen moment, in place of those it touches. */
export function drawTimeLabel(drawing: Drawing, time: Scale, timeNs: number): void {
  const { context, area, theme } = drawing;
  if (timeNs < time.from || timeNs > time.to) {
    return;
  }
  const text = formatTime(timeNs, (time.to - time.from) / 2000);
  const width = context.measureText(text).width + 10;
  const right = area.left + area.width + 8 - width;
  const left = Math.min(Math.max(toPixel(time, timeNs) - width / 2, area.left - 8), right);
  context.fillStyle = theme.background;
  for (const each of timeLabels(drawing, time)) {
    if (each.left < left + width && each.left + each.width > left) {
      context.fillRect(each.left - 1, 0, each.width + 2, 17);
    }
  }
  context.fillStyle = theme.accent;
  context.fillRect(left, 0, width, 17);
  context.fillStyle = theme.background;
  setText(context, "left", undefined, "top");
  context.fillText(text, left + 5, 3);
}

/** The range that a drag has marked so far. */
export function drawMark(
  drawing: Drawing,
  marked: { readonly fromPx: number; readonly toPx: number } | undefined,
): void {
  if (marked !== undefined) {
    const { context, area, theme } = drawing;
    const from = Math.min(marked.fromPx, marked.toPx);
    context.globalAlpha = 0.2;
    context.fillStyle = theme.accent;
    context.fillRect(from, area.top, Math.abs(marked.toPx - marked.fromPx), area.height);
    context.globalAlpha = 1;
  }
}

/** A bracket above the plot over a time that something lasted. */
export function drawExtent(
  { context, area, theme }: Drawing,
  time: Scale,
  extent: { readonly fromNs: number; readonly toNs: number },
): void {
  const right = area.left + area.width;
  const from = Math.min(Math.max(toPixel(time, extent.fromNs), area.left), right);
  const to = Math.min(Math.max(toPixel(time, extent.toNs), area.left), right);
  if (extent.toNs >= time.from && extent.fromNs <= time.to) {
    context.fillStyle = theme.text;
    context.fillRect(from - 1, area.top - EXTENT_PX, Math.max(to - from, 2), EXTENT_PX);
  }
}

function vertical(
  drawing: Drawing,
  time: Scale,
  timeNs: number,
  colour: string,
  dashPx: number[],
): void {
  if (timeNs < time.from || timeNs > time.to) {
    return;
  }
  const { context, area, theme } = drawing;
  const x = Math.round(toPixel(time, timeNs)) + 0.5;
  context.save();
  context.strokeStyle = theme.background;
  context.lineWidth = 3;
  line(context, x, area.top, x, area.top + area.height);
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.setLineDash(dashPx);
  line(context, x, area.top, x, area.top + area.height);
  context.restore();
}
