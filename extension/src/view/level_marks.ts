import { formatBytes } from "../base/format.ts";
import { toPixel, type Scale } from "../base/scale.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import type { Mark, MarkKind } from "../model/marks.ts";
import { line, setText } from "./axes.ts";
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
  const { context, area, theme } = drawing;
  const peakNs = timeline.events.timeNs[timeline.peak] ?? 0;
  const level = timeline.lines.allocated.values[timeline.peak] ?? 0;
  if (level === 0 || peakNs < time.from || peakNs > time.to || timeline.events.count === 0) {
    return;
  }
  const x = toPixel(time, peakNs);
  const y = toPixel(bytes, level);
  context.fillStyle = theme.background;
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(x, y, 4, 0, 2 * Math.PI);
  context.fill();
  context.stroke();
  drawLabel(
    drawing,
    `peak allocated ${formatBytes(level)}`,
    x,
    Math.min(y + 17, area.top + area.height - 12),
  );
}

const MARK_PX = 6;
const NEAR_PX = 7;
const SIGNS: Readonly<Record<MarkKind, string>> = {
  "out of memory": "▼",
  snapshot: "◆",
  "memory returned": "△",
  "empty_cache()": "▲",
};

/**
 * Marks above the plot, each with a sign of its kind.
 *
 * Those that a label of their own would lie on share one, and signs below it are left out.
 */
export function drawMarks(drawing: Drawing, marks: readonly Mark[], time: Scale): void {
  const { context, area, theme } = drawing;
  const seen = marksIn(marks, time);
  const places = seen.map(({ timeNs }) => toPixel(time, timeNs));
  let takenUntil = -Infinity;
  let labelledUntil = -Infinity;
  seen.forEach(({ kind }, at) => {
    const x = places[at] ?? 0;
    const isFailure = kind === "out of memory";
    context.strokeStyle = isFailure ? theme.alarm : theme.muted;
    context.fillStyle = context.strokeStyle;
    context.lineWidth = isFailure ? 1.5 : 1;
    if (isFailure || x > takenUntil) {
      takenUntil = x + MARK_PX;
      line(context, x, area.top - 2, x, area.top + (isFailure ? area.height : MARK_PX));
      setText(context, "center");
      context.fillText(SIGNS[kind], x, area.top - 7);
    }
    if (x > labelledUntil) {
      const [label, last] = labelFrom(seen, places, at, context);
      const until = x + drawLabel(drawing, label, x, area.top - 12);
      takenUntil = Math.max(takenUntil, until);
      labelledUntil = Math.max(until, places[last] ?? 0);
    }
  });
}

/** The label of a mark, or of it and the next ones of its kind; and which is the last of them. */
function labelFrom(
  marks: readonly Mark[],
  places: readonly number[],
  first: number,
  context: CanvasRenderingContext2D,
): readonly [label: string, last: number] {
  const { kind = "snapshot", bytes = 0 } = marks[first] ?? {};
  const own = kind === "snapshot" ? kind : `${kind}: ${formatBytes(bytes)}`;
  const widthPx = context.measureText(own).width + 4 * PADDING_PX;
  let last = first;
  while (
    marks[last + 1]?.kind === kind &&
    (places[last + 1] ?? Infinity) - (places[last] ?? 0) < widthPx
  ) {
    last += 1;
  }
  return [last === first ? own : `${kind}, ${last - first + 1} times`, last];
}

/** The mark near a place above or in the plot; failures first. */
export function markNear(marks: readonly Mark[], time: Scale, x: number): Mark | undefined {
  const near = marksIn(marks, time).filter(
    ({ timeNs }) => Math.abs(toPixel(time, timeNs) - x) <= NEAR_PX,
  );
  return near.find(({ kind }) => kind === "out of memory") ?? near[0];
}

function marksIn(marks: readonly Mark[], time: Scale): Mark[] {
  return marks.filter(({ timeNs }) => timeNs >= time.from && timeNs <= time.to);
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
  setText(context, "left");
  context.fillText(text, left + PADDING_PX, y + 1);
  return width + 2 * PADDING_PX;
}
