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

interface TimeTicks {
  readonly ticks: readonly number[];
  readonly label: (tick: number) => string;
}

function timeTicks({ area }: Drawing, scale: Scale): TimeTicks {
  const most = Math.max(area.width / TICK_SPACING_X_PX, 2);
  const farthest = Math.max(Math.abs(scale.from), Math.abs(scale.to));
  const isLong = farthest >= CLOCK_FROM_NS;
  const ticks = (isLong ? clockTicks : decimalTicks)(scale.from, scale.to, most);
  const unit = TIME_UNITS.find((candidate) => farthest >= candidate.ns) ?? TIME_UNITS[3];
  const step = (ticks[1] ?? scale.to) - (ticks[0] ?? scale.from);
  const digits = Math.min(Math.max(Math.ceil(Math.log10(unit.ns / step) - 1e-9), 0), 9);
  const label = (tick: number): string =>
    isLong ? formatClock(tick, digits) : `${(tick / unit.ns).toFixed(digits)} ${unit.name}`;
  return { ticks, label };
}

/** Vertical grid lines at the ticks of a time axis. */
export function drawTimeGrid(drawing: Drawing, scale: Scale): void {
  const { context, area, theme } = drawing;
  context.strokeStyle = theme.grid;
  for (const tick of timeTicks(drawing, scale).ticks) {
    const x = Math.round(toPixel(scale, tick)) + 0.5;
    line(context, x, area.top, x, area.top + area.height);
  }
}

/** Labels of time ticks from a height on. */
export function drawTimeLabels(drawing: Drawing, scale: Scale, topPx = 3): void {
  const { context, theme } = drawing;
  setText(context, "left", undefined, "top");
  context.fillStyle = theme.muted;
  for (const { text, left } of timeLabels(drawing, scale)) {
    context.fillText(text, left, topPx);
  }
}

/** The labels of time ticks, and where they are. */
export function timeLabels(
  drawing: Drawing,
  scale: Scale,
): { readonly text: string; readonly left: number; readonly width: number }[] {
  const { canvas } = drawing.context;
  const { ticks, label } = timeTicks(drawing, scale);
  return ticks.map((tick) => {
    const text = label(tick);
    const { width } = drawing.context.measureText(text);
    const left = Math.min(toPixel(scale, tick) - width / 2, canvas.clientWidth - width);
    return { text, left, width };
  });
}

/** Labelled byte ticks left of the plot area, with horizontal grid lines. */
export function drawByteAxis(drawing: Drawing, scale: Scale): void {
  const { context, area, theme } = drawing;
  const low = Math.min(scale.from, scale.to);
  const high = Math.max(scale.from, scale.to);
  setText(context, "right");
  for (const tick of binaryTicks(low, high, Math.max(area.height / TICK_SPACING_Y_PX, 2))) {
    const y = Math.round(toPixel(scale, tick)) + 0.5;
    context.strokeStyle = theme.grid;
    line(context, area.left - 4, y, area.left + area.width, y);
    context.fillStyle = theme.muted;
    context.fillText(shortBytes(tick), area.left - 8, y);
  }
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

/** Sets how text is drawn from now on; in the font so far if no `size` of the page's is given. */
export function setText(
  context: CanvasRenderingContext2D,
  align: CanvasTextAlign,
  size?: string,
  baseline: CanvasTextBaseline = "middle",
): void {
  if (size !== undefined) {
    context.font = `${size} system-ui, sans-serif`;
  }
  context.textAlign = align;
  context.textBaseline = baseline;
}

/** The name of a row, left of it. */
export function drawTitle({ context, area, theme }: Drawing, title: string, y: number): void {
  context.fillStyle = theme.muted;
  setText(context, "right");
  context.fillText(title, area.left - 8, y);
}
