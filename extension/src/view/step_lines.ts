import { toPixel, type Scale } from "../base/scale.ts";
import {
  columnExtremes,
  columnLargest,
  columnRows,
  type ColumnExtremes,
  type LevelLine,
} from "../model/decimation.ts";
import { usedAt, type UsedMemory } from "../model/device_memory.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import type { Indices } from "../model/events.ts";
import type { LevelName } from "../model/levels.ts";
import { saveAndClip, type Drawing } from "./plot.ts";

interface LevelStyle {
  /** Also the name of its line's colour. */
  readonly name: LevelName;
  readonly dashPx: readonly number[];
  readonly fill?: "reservedFill" | "allocatedFill";
}

/** How far a line may be drawn beyond the top and bottom of the plot area. */
const LINE_SLACK_PX = 2;

/** In the order of painting; dashes keep lines apart that lie on each other. */
export const LEVEL_STYLES: readonly LevelStyle[] = [
  { name: "reserved", dashPx: [], fill: "reservedFill" },
  { name: "allocated", dashPx: [], fill: "allocatedFill" },
  { name: "active", dashPx: [7, 5] },
  { name: "requested", dashPx: [2, 3] },
];

/** The levels as step lines; a pixel column shows every level that occurs in it. */
export function drawLevels(
  drawing: Drawing,
  timeline: DeviceTimeline,
  time: Scale,
  bytes: Scale,
): void {
  const { context, area, theme, pixelRatio } = drawing;
  const columns = Math.max(Math.round(area.width * pixelRatio), 1);
  const rows = columnRows(timeline.events.timeNs, time.from, time.to, columns);
  saveAndClip(drawing, LINE_SLACK_PX);
  for (const { name, dashPx, fill } of LEVEL_STYLES) {
    const line = timeline.lines[name];
    const extremes = fill === undefined ? highest(line, rows) : columnExtremes(line, rows);
    if (fill !== undefined) {
      context.fillStyle = theme[fill];
      fillBelow(drawing, extremes, bytes);
    }
    context.strokeStyle = theme[name];
    context.lineWidth = 1.5;
    context.setLineDash([...dashPx]);
    strokeSteps(drawing, extremes, bytes);
  }
  context.restore();
}

/** Only the highest level of each column: dashes that went up and down would fill it. */
function highest(line: LevelLine, rows: Indices): ColumnExtremes {
  const largest = columnLargest(line, rows);
  return { smallest: largest, largest, last: largest };
}

const USED_DASH_PX = [9, 3, 2, 3];

/** What all processes use of the device, from sample to sample. */
export function drawUsed(drawing: Drawing, used: UsedMemory, time: Scale, bytes: Scale): void {
  const { context, area, theme } = drawing;
  saveAndClip(drawing, LINE_SLACK_PX);
  context.strokeStyle = theme.used;
  context.lineWidth = 1.5;
  context.setLineDash(USED_DASH_PX);
  context.beginPath();
  let y = toPixel(bytes, usedAt(used, time.from));
  context.moveTo(area.left, y);
  used.timeNs.forEach((timeNs, sample) => {
    if (timeNs >= time.from && timeNs <= time.to) {
      const x = toPixel(time, timeNs);
      context.lineTo(x, y);
      y = toPixel(bytes, used.bytes[sample] ?? 0);
      context.lineTo(x, y);
    }
  });
  context.lineTo(area.left + area.width, y);
  context.stroke();
  context.restore();
}

function fillBelow({ context, area }: Drawing, extremes: ColumnExtremes, bytes: Scale): void {
  const step = area.width / extremes.largest.length;
  context.beginPath();
  context.moveTo(area.left, area.top + area.height);
  extremes.largest.forEach((level, column) => {
    const y = toPixel(bytes, level);
    context.lineTo(area.left + column * step, y);
    context.lineTo(area.left + (column + 1) * step, y);
  });
  context.lineTo(area.left + area.width, area.top + area.height);
  context.fill();
}

function strokeSteps({ context, area }: Drawing, extremes: ColumnExtremes, bytes: Scale): void {
  const step = area.width / extremes.last.length;
  context.beginPath();
  extremes.last.forEach((last, column) => {
    const x = area.left + (column + 0.5) * step;
    const before = column === 0 ? last : (extremes.last[column - 1] ?? last);
    const high = extremes.largest[column] ?? last;
    const low = extremes.smallest[column] ?? last;
    context.lineTo(x, toPixel(bytes, before));
    if (high !== before || low !== before) {
      context.lineTo(x, toPixel(bytes, high));
      context.lineTo(x, toPixel(bytes, low));
      context.lineTo(x, toPixel(bytes, last));
    }
  });
  context.stroke();
}
