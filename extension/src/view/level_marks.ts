import { formatBytes } from "../base/format.ts";
import { toPixel, type Scale } from "../base/scale.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { line } from "./axes.ts";
import type { Drawing } from "./plot.ts";

const PADDING_PX = 5;
const LABEL_HEIGHT_PX = 18;

/** Marks the first moment with the most allocated bytes. */
export function drawPeak(
  drawing: Drawing,
  timeline: DeviceTimeline,
  time: Scale,
  bytes: Scale,
): void {
  const { context, theme } = drawing;
  const peakNs = timeline.events.timeNs[timeline.peak] ?? 0;
  if (peakNs < time.from || peakNs > time.to || timeline.events.count === 0) {
    return;
  }
  const level = timeline.levels.allocated[timeline.peak] ?? 0;
  const x = toPixel(time, peakNs);
  const y = toPixel(bytes, level);
  context.fillStyle = theme.background;
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(x, y, 4, 0, 2 * Math.PI);
  context.fill();
  context.stroke();
  drawLabel(drawing, `peak allocated ${formatBytes(level)}`, x, y + 17);
}

/** Marks each allocation that failed; marks too close together share a label. */
export function drawOutOfMemory(drawing: Drawing, timeline: DeviceTimeline, time: Scale): void {
  const { context, area, theme } = drawing;
  let labelledUntil = -Infinity;
  for (const row of timeline.outOfMemory) {
    const timeNs = timeline.events.timeNs[row] ?? 0;
    if (timeNs < time.from || timeNs > time.to) {
      continue;
    }
    const x = toPixel(time, timeNs);
    context.strokeStyle = theme.alarm;
    context.fillStyle = theme.alarm;
    context.lineWidth = 1.5;
    line(context, x, area.top, x, area.top + area.height);
    context.beginPath();
    context.moveTo(x - 6, area.top - 9);
    context.lineTo(x + 6, area.top - 9);
    context.lineTo(x, area.top + 1);
    context.fill();
    if (x > labelledUntil) {
      labelledUntil = x + drawLabel(drawing, "out of memory", x, area.top - 12);
    }
  }
}

/** Text in a box beside a point, on the side where it fits; returns the width it takes. */
function drawLabel(drawing: Drawing, text: string, x: number, y: number): number {
  const { context, area, theme } = drawing;
  const width = context.measureText(text).width + 2 * PADDING_PX;
  const fitsRight = x + PADDING_PX + width < area.left + area.width;
  const left = Math.round(fitsRight ? x + PADDING_PX : x - PADDING_PX - width) + 0.5;
  const top = Math.round(y - LABEL_HEIGHT_PX / 2) + 0.5;
  context.fillStyle = theme.background;
  context.strokeStyle = theme.grid;
  context.lineWidth = 1;
  context.fillRect(left, top, width, LABEL_HEIGHT_PX);
  context.strokeRect(left, top, width, LABEL_HEIGHT_PX);
  context.fillStyle = theme.text;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(text, left + PADDING_PX, y + 1);
  return width + 2 * PADDING_PX;
}
