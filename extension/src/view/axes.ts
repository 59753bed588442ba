import { CLOCK_FROM_NS, formatBytes, formatClock, TIME_UNITS } from "../base/format.ts";
import { binaryTicks, clockTicks, decimalTicks, toPixel, type Scale } from "../base/scale.ts";
import type { Drawing, PlotArea } from "./plot.ts";

const TICK_SPACING_X_PX = 110;
const TICK_SPACING_ACROSS_PX = 130;
const TICK_SPACING_Y_PX = 36;

/** A scale from the left to the right edge of a plot area. */
export function scaleAcross({ left, width }: PlotArea, from: number, to: number): Scale {
  return { from, to, fromPx: left, toPx: left + width };
}

/** A scale from 0 at the bottom edge of a plot area to its top edge. */
export function scaleUp({ top, height }: PlotArea, to: number): Scale {
  return { from: 0, to, fromPx: top + height, toPx: top };
}

/** Labelled time ticks below the plot area, with vertical grid lines. */
export function drawTimeAxis(drawing: Drawing, scale: Scale, title: string): void {
  const { context, area, theme } = drawing;
  const most = Math.max(area.width / TICK_SPACING_X_PX, 2);
  const farthest = Math.max(Math.abs(scale.from), Math.abs(scale.to));
  const isLong = farthest >= CLOCK_FROM_NS;
  const ticks = (isLong ? clockTicks : decimalTicks)(scale.from, scale.to, most);
  const unit = TIME_UNITS.find((candidate) => farthest >= candidate.ns) ?? TIME_UNITS[3];
  const step = (ticks[1] ?? scale.to) - (ticks[0] ?? scale.from);
  const digits = Math.min(Math.max(Math.ceil(Math.log10(unit.ns / step) - 1e-9), 0), 9);
  context.textBaseline = "top";
  context.textAlign = "center";
  const bottom = area.top + area.height;
  for (const tick of ticks) {
    const x = Math.round(toPixel(scale, tick)) + 0.5;
    context.strokeStyle = theme.grid;
    line(context, x, area.top, x, bottom + 4);
    context.fillStyle = theme.muted;
    const label = isLong
      ? formatClock(tick, digits)
      : `${(tick / unit.ns).toFixed(digits)} ${unit.name}`;
    const farthestRight = context.canvas.clientWidth - context.measureText(label).width / 2;
    context.fillText(label, Math.min(x, farthestRight), bottom + 7);
  }
  context.textAlign = "left";
  context.fillStyle = theme.muted;
  context.fillText(title, area.left, bottom + 23);
}

/** Labelled byte ticks left of the plot area, with horizontal grid lines. */
export function drawByteAxis(drawing: Drawing, scale: Scale, title: string): void {
  const { context, area, theme } = drawing;
  const low = Math.min(scale.from, scale.to);
  const high = Math.max(scale.from, scale.to);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of binaryTicks(low, high, Math.max(area.height / TICK_SPACING_Y_PX, 2))) {
    const y = Math.round(toPixel(scale, tick)) + 0.5;
    context.strokeStyle = theme.grid;
    line(context, area.left - 4, y, area.left + area.width, y);
    context.fillStyle = theme.muted;
    context.fillText(shortBytes(tick), area.left - 8, y);
  }
  context.textAlign = "left";
  context.textBaseline = "bottom";
  context.fillStyle = theme.muted;
  context.fillText(title, 8, area.top - 8);
}

/** A byte scale below bars: how many bytes a length stands for. */
export function drawBytesAcross(drawing: Drawing, widthBytes: number): void {
  const { context, area, theme } = drawing;
  const scale = scaleAcross(area, 0, widthBytes);
  const bottom = area.top + area.height;
  context.strokeStyle = theme.muted;
  context.fillStyle = theme.muted;
  context.textBaseline = "top";
  line(context, area.left, bottom + 4.5, area.left + area.width, bottom + 4.5);
  for (const tick of binaryTicks(0, widthBytes, area.width / TICK_SPACING_ACROSS_PX)) {
    const x = Math.round(toPixel(scale, tick)) + 0.5;
    context.textAlign = tick === 0 ? "left" : x > scale.toPx - 30 ? "right" : "center";
    line(context, x, bottom + 1, x, bottom + 8);
    context.fillText(formatBytes(tick), x, bottom + 10);
  }
  context.textAlign = "left";
  context.fillText("length of a bar, in bytes", area.left, bottom + 26);
}

/** Ticks are round, so `2.00 GiB` reads better as `2 GiB`. */
function shortBytes(bytes: number): string {
  return formatBytes(bytes).replace(/\.0+ /, " ");
}

export function line(
  context: CanvasRenderingContext2D,
  fromX: number,
  fromY: number,
  toX: number,
  toY: number,
): void {
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX, toY);
  context.stroke();
}
