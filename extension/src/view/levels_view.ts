import { formatBytes } from "../base/format.ts";
import { toPixel, type Scale } from "../base/scale.ts";
import { columnExtremes, type ColumnExtremes } from "../model/decimation.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import type { LevelName } from "../model/levels.ts";
import { drawByteAxis, drawTimeAxis, line } from "./axes.ts";
import { drawCursor, drawMark, drawMoment } from "./cursor.ts";
import type { Frames } from "./frames.ts";
import { addTimeGestures } from "./gestures.ts";
import { Plot, type Drawing } from "./plot.ts";
import type { Selection } from "./selection.ts";
import type { Theme } from "./theme.ts";

const HEIGHT_PX = 300;
const HEADROOM = 1.08;

export interface LevelStyle {
  readonly name: LevelName;
  readonly dashPx: readonly number[];
  readonly line: (theme: Theme) => string;
  readonly fill: ((theme: Theme) => string) | undefined;
}

/** In the order of painting; dashes keep lines apart that lie on each other. */
export const LEVEL_STYLES: readonly LevelStyle[] = [
  {
    name: "reserved",
    dashPx: [],
    line: (t) => t.reserved,
    fill: (t) => t.reservedFill,
  },
  {
    name: "allocated",
    dashPx: [],
    line: (t) => t.allocated,
    fill: (t) => t.allocatedFill,
  },
  { name: "active", dashPx: [7, 5], line: (t) => t.active, fill: undefined },
  {
    name: "requested",
    dashPx: [2, 3],
    line: (t) => t.requested,
    fill: undefined,
  },
];

/** The totals over time. */
export function levelsView(
  parent: HTMLElement,
  frames: Frames,
  timeline: DeviceTimeline,
  selection: Selection,
): Plot {
  const plot = new Plot(parent, frames, {
    label:
      "Memory levels over time. Arrow keys move the cursor, Enter chooses the moment.",
    heightPx: HEIGHT_PX,
    marginsPx: { left: 84, right: 16, top: 26, bottom: 42 },
  });
  const highest = timeline.levels.reserved.reduce(
    (high, value) => Math.max(high, value),
    1,
  );
  const highestActive = timeline.levels.active.reduce(
    (high, value) => Math.max(high, value),
    1,
  );
  const top = Math.max(highest, highestActive) * HEADROOM;
  const timeScale = (): Scale => {
    const { fromNs, toNs } = selection.window.range.value;
    const { left, width } = plot.area;
    return { from: fromNs, to: toNs, fromPx: left, toPx: left + width };
  };
  const byteScale = (): Scale => {
    const area = plot.area;
    return { from: 0, to: top, fromPx: area.top + area.height, toPx: area.top };
  };
  const gestures = addTimeGestures(plot, selection, timeScale, (timeNs) => {
    selection.momentRow.value = timeline.rowAt(timeNs);
  });
  plot.onDraw(
    (drawing) => {
      drawByteAxis(drawing, byteScale(), "bytes on the device");
      drawTimeAxis(drawing, timeScale(), "time since the recording began");
      drawLevels(drawing, timeline, timeScale(), byteScale());
      drawPeak(drawing, timeline, timeScale(), byteScale());
      drawOutOfMemory(drawing, timeline, timeScale());
    },
    (drawing) => {
      drawMoment(
        drawing,
        timeScale(),
        timeline.events.timeNs[selection.momentRow.value] ?? 0,
      );
      drawCursor(drawing, timeScale(), selection.cursorNs.value);
      drawMark(drawing, gestures.marked.value);
    },
  );
  plot.scope.defer(selection.window.range.subscribe(() => plot.redraw()));
  for (const changed of [
    selection.cursorNs,
    selection.momentRow,
    gestures.marked,
  ]) {
    plot.scope.defer(changed.subscribe(() => plot.redrawOverlay()));
  }
  return plot;
}

function drawLevels(
  drawing: Drawing,
  timeline: DeviceTimeline,
  time: Scale,
  bytes: Scale,
): void {
  const { context, area, theme, pixelRatio } = drawing;
  const columns = Math.max(Math.round(area.width * pixelRatio), 1);
  const { timeNs } = timeline.events;
  context.save();
  context.beginPath();
  context.rect(area.left, area.top - 2, area.width, area.height + 4);
  context.clip();
  for (const style of LEVEL_STYLES) {
    const level = timeline.levels[style.name];
    const extremes = columnExtremes(timeNs, level, time.from, time.to, columns);
    if (style.fill !== undefined) {
      context.fillStyle = style.fill(theme);
      fillBelow(drawing, extremes, bytes);
    }
    context.strokeStyle = style.line(theme);
    context.lineWidth = 1.5;
    context.setLineDash([...style.dashPx]);
    strokeSteps(drawing, extremes, bytes);
  }
  context.restore();
}

function fillBelow(
  drawing: Drawing,
  extremes: ColumnExtremes,
  bytes: Scale,
): void {
  const { context, area } = drawing;
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

function strokeSteps(
  drawing: Drawing,
  extremes: ColumnExtremes,
  bytes: Scale,
): void {
  const { context, area } = drawing;
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

function drawPeak(
  drawing: Drawing,
  timeline: DeviceTimeline,
  time: Scale,
  bytes: Scale,
): void {
  const { context, area, theme } = drawing;
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
  const label = `peak allocated ${formatBytes(level)}`;
  const isRight =
    x + 10 + context.measureText(label).width < area.left + area.width;
  context.textAlign = isRight ? "left" : "right";
  context.textBaseline = "middle";
  outlinedText(drawing, label, x + (isRight ? 9 : -9), y + 14);
}

function drawOutOfMemory(
  drawing: Drawing,
  timeline: DeviceTimeline,
  time: Scale,
): void {
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
    line(context, x, area.top, x, area.top + area.height);
    context.beginPath();
    context.moveTo(x - 6, area.top - 9);
    context.lineTo(x + 6, area.top - 9);
    context.lineTo(x, area.top + 1);
    context.fill();
    const width = context.measureText("out of memory").width;
    if (x > labelledUntil + 8) {
      const isRight = x + 10 + width < area.left + area.width;
      context.textAlign = isRight ? "left" : "right";
      context.textBaseline = "bottom";
      outlinedText(
        drawing,
        "out of memory",
        x + (isRight ? 9 : -9),
        area.top - 1,
      );
      labelledUntil = x + width;
    }
  }
}

function outlinedText(
  drawing: Drawing,
  text: string,
  x: number,
  y: number,
): void {
  const { context, theme } = drawing;
  context.lineWidth = 3;
  context.strokeStyle = theme.background;
  context.strokeText(text, x, y);
  context.lineWidth = 1;
  context.fillStyle = theme.text;
  context.fillText(text, x, y);
}
