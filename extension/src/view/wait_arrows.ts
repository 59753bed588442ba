import { toPixel, type Scale } from "../base/scale.ts";
import type { StreamWaits } from "../model/host_calls.ts";
import type { LaneLayout, PlacedLane } from "./lane_layout.ts";
import { saveAndClip, type Drawing } from "./plot.ts";

const MOST_ARROWS = 1500;
const HEAD_PX = 6;
const LEAST_REACH_PX = 10;

/** Arrows from where an event was recorded to the work of another stream that waited for it. */
export function drawWaitArrows(
  drawing: Drawing,
  layout: LaneLayout,
  time: Scale,
  waits: StreamWaits,
): void {
  const lanes = new Map(layout.lanes.map((placed) => [placed.lane.stream, placed]));
  const drawn = new Set<string>();
  saveAndClip(drawing);
  for (let wait = 0; wait < waits.count && drawn.size < MOST_ARROWS; wait += 1) {
    const from = lanes.get(waits.recordedStream[wait] ?? 0);
    const to = lanes.get(waits.waitingStream[wait] ?? 0);
    const fromNs = waits.recordedNs[wait] ?? 0;
    const toNs = waits.resumedNs[wait] ?? 0;
    const isSeen = Math.max(fromNs, toNs) >= time.from && Math.min(fromNs, toNs) <= time.to;
    if (from !== undefined && to !== undefined && isSeen) {
      const fromX = toPixel(time, fromNs);
      const toX = toPixel(time, toNs);
      const place = `${fromX >> 2} ${toX >> 2} ${from.topPx} ${to.topPx}`;
      if (!drawn.has(place)) {
        drawn.add(place);
        drawArrow(drawing, fromX, from, toX, to);
      }
    }
  }
  drawing.context.restore();
}

function drawArrow(
  { context, area, theme }: Drawing,
  fromX: number,
  from: PlacedLane,
  toX: number,
  to: PlacedLane,
): void {
  const isDown = to.topPx > from.topPx;
  const fromY = area.top + from.topPx + (isDown ? from.heightPx : 0);
  const toY = area.top + to.topPx + (isDown ? 0 : to.heightPx);
  const reach = Math.max(Math.abs(toX - fromX) / 2, LEAST_REACH_PX);
  const head = isDown ? -HEAD_PX : HEAD_PX;
  for (const [width, stroke] of [
    [3.5, theme.background],
    [1.5, theme.text],
  ] as const) {
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.bezierCurveTo(fromX, fromY - head, toX - reach, toY + 2 * head, toX, toY + head / 2);
    context.stroke();
  }
  context.fillStyle = theme.text;
  context.beginPath();
  context.moveTo(toX, toY);
  context.lineTo(toX - HEAD_PX / 2 - 1, toY + head);
  context.lineTo(toX + HEAD_PX / 2 + 1, toY + head);
  context.fill();
  context.beginPath();
  context.arc(fromX, fromY, 2.5, 0, 2 * Math.PI);
  context.fill();
}
