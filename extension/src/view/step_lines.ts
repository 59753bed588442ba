import { toPixel, type Scale } from "../base/scale.ts";
import type { ColumnExtremes } from "../model/decimation.ts";
import { usedAt, type UsedMemory } from "../model/device_memory.ts";
import type { Floats } from "../model/events.ts";
import type { Drawing } from "./plot.ts";

/** The dashes of the levels beside the allocated and reserved ones. */
export const LEVEL_DASHES_PX = { active: [7, 5], requested: [2, 3], used: [9, 3, 2, 3] };
export type ShownLevel = keyof typeof LEVEL_DASHES_PX;

/** Lines that are closer are drawn once. */
const APART_PX = 1.5;

/** Fills what lies below the largest level of each column. */
export function fillBelow({ context, area }: Drawing, largest: Floats, scale: Scale): void {
  const step = area.width / largest.length;
  context.beginPath();
  context.moveTo(area.left, area.top + area.height);
  largest.forEach((level, column) => {
    const y = toPixel(scale, level);
    context.lineTo(area.left + column * step, y);
    context.lineTo(area.left + (column + 1) * step, y);
  });
  context.lineTo(area.left + area.width, area.top + area.height);
  context.fill();
}

/** Draws a line through every level of each column, but where it lies on `other`. */
export function strokeSteps(
  { context, area }: Drawing,
  { smallest, largest, last }: ColumnExtremes,
  scale: Scale,
  other?: ColumnExtremes,
): void {
  const step = area.width / last.length;
  const isOn = (left: Floats, right: Floats, column: number): boolean =>
    Math.abs(toPixel(scale, left[column] ?? 0) - toPixel(scale, right[column] ?? 0)) < APART_PX;
  let isDown = false;
  context.beginPath();
  last.forEach((level, column) => {
    const x = area.left + (column + 0.5) * step;
    const before = column === 0 ? level : (last[column - 1] ?? level);
    const high = largest[column] ?? level;
    const low = smallest[column] ?? level;
    const isDrawn =
      other === undefined ||
      !isOn(largest, other.largest, column) ||
      !isOn(smallest, other.smallest, column);
    if (!isDrawn) {
      isDown = false;
      return;
    }
    if (isDown) {
      context.lineTo(x, toPixel(scale, before));
    } else {
      context.moveTo(x - step / 2, toPixel(scale, before));
    }
    isDown = true;
    if (high !== before || low !== before) {
      context.lineTo(x, toPixel(scale, high));
      context.lineTo(x, toPixel(scale, low));
      context.lineTo(x, toPixel(scale, level));
    }
    context.lineTo(x + step / 2, toPixel(scale, level));
  });
  context.stroke();
}

/** What all processes use of the device, from its first sample on. */
export function strokeUsed(drawing: Drawing, used: UsedMemory, time: Scale, bytes: Scale): void {
  traceUsed(drawing, used, time, bytes);
  drawing.context.stroke();
}

/** Fills what lies below the samples. */
export function fillUsed(drawing: Drawing, used: UsedMemory, time: Scale, bytes: Scale): void {
  const { context, area } = drawing;
  const fromX = traceUsed(drawing, used, time, bytes);
  context.lineTo(area.left + area.width, area.top + area.height);
  context.lineTo(fromX, area.top + area.height);
  context.fill();
}

/** Makes the path, and returns where it begins. */
function traceUsed(
  { context, area }: Drawing,
  used: UsedMemory,
  time: Scale,
  bytes: Scale,
): number {
  const endX = area.left + area.width;
  const within = (x: number): number => Math.min(Math.max(x, area.left), endX);
  const fromX = within(toPixel(time, used.timeNs[0] ?? time.to));
  context.beginPath();
  let y = toPixel(bytes, usedAt(used, time.from));
  context.moveTo(fromX, y);
  used.timeNs.forEach((timeNs, sample) => {
    if (timeNs >= time.from && timeNs <= time.to) {
      const x = toPixel(time, timeNs);
      context.lineTo(x, y);
      y = toPixel(bytes, used.bytes[sample] ?? 0);
      context.lineTo(x, y);
    }
  });
  context.lineTo(endX, y);
  return fromX;
}
