import { toPixel, type Scale } from "../base/scale.ts";
import { SpanKind } from "../model/span_kinds.ts";
import type { ChartContext, HazardArrow } from "./chart_context.ts";
import type { LaneLayout, PlacedLane } from "./lane_layout.ts";
import { saveAndClip, type Drawing } from "./plot.ts";

const MOST_ARROWS = 1500;
/** Arrows between two streams that begin and end in the same so many pixels are drawn once. */
const APART_PX = 4;
const CROWDED_APART_PX = 32;
const HEAD_PX = 7;
/** How wide an arrow is for the pointer. */
const REACHED_PX = 11;

type Point = readonly [x: number, y: number];

/**
 * Arrows from where an event was recorded to the work of another stream that waited for it, from
 * one end of a copy between devices to the other, and from an operation to one that nothing orders
 * after it, where both are in sight.
 *
 * The result tells which of the last is at a place of the plot.
 */
export function drawArrows(
  drawing: Drawing,
  layout: LaneLayout,
  time: Scale,
  { gpu: { activities, streamWaits: waits, peerCopies: copies }, hazards }: ChartContext,
): (x: number, y: number) => HazardArrow | undefined {
  const { area, context, pixelRatio, theme } = drawing;
  const lanes = new Map(layout.lanes.map((placed) => [placed.lane.stream, placed]));
  const drawn = new Set<string>();
  const isSeen = (fromNs = 0, toNs = 0): boolean =>
    Math.max(fromNs, toNs) >= time.from && Math.min(fromNs, toNs) <= time.to;
  const seen = waits.recordedNs.reduce(
    (count, fromNs, wait) => count + Number(isSeen(fromNs, waits.resumedNs[wait])),
    0,
  );
  // A thicket of arrows would hide the streams.
  const isCrowded = seen * CROWDED_APART_PX > area.width;
  const apartPx = isCrowded ? CROWDED_APART_PX : APART_PX;
  saveAndClip(drawing);
  const draw = (
    from: PlacedLane | undefined,
    to: PlacedLane | undefined,
    fromNs: number,
    toNs: number,
    colour: string,
  ): void => {
    if (from !== undefined && to !== undefined && isSeen(fromNs, toNs)) {
      const fromX = toPixel(time, fromNs);
      const toX = toPixel(time, toNs);
      const columns = [fromX, isCrowded ? 0 : toX].map((x) => Math.floor(x / apartPx));
      const place = [...columns, from.topPx, to.topPx, colour].join(" ");
      if (!drawn.has(place)) {
        drawn.add(place);
        const isDown = to.topPx > from.topPx;
        const fromY = area.top + from.topPx + (isDown ? from.heightPx : 0);
        const toY = area.top + to.topPx + (isDown ? 0 : to.heightPx);
        drawArrow(drawing, colour, 1.5, [fromX, fromY], [toX, toY]);
      }
    }
  };
  for (let wait = 0; wait < waits.count && drawn.size < MOST_ARROWS; wait += 1) {
    draw(
      lanes.get(waits.recordedStream[wait]),
      lanes.get(waits.waitingStream[wait]),
      waits.recordedNs[wait] ?? 0,
      waits.resumedNs[wait] ?? 0,
      theme.text,
    );
  }
  /** The lane of a stream, of an unknown one the first of its device. */
  const endOf = (stream = 0, device = 0): PlacedLane | undefined =>
    (stream === 0 ? undefined : lanes.get(stream)) ??
    layout.lanes.find(({ lane }) => lane.device === device);
  const copyColour = theme.spans[SpanKind.deviceToDevice] ?? theme.text;
  for (let copy = 0; copy < copies.count && drawn.size < MOST_ARROWS; copy += 1) {
    draw(
      endOf(copies.sourceStream[copy], copies.sourceDevice[copy]),
      endOf(copies.destinationStream[copy], copies.destinationDevice[copy]),
      copies.fromNs[copy] ?? 0,
      copies.toNs[copy] ?? 0,
      copyColour,
    );
  }
  /** The middle of what is in sight of an operation. */
  const middleOf = (row: number): Point | undefined => {
    const lane = lanes.get(activities.stream[row]);
    const from = Math.max(activities.fromNs[row] ?? 0, time.from);
    const to = Math.min(activities.toNs[row] ?? 0, time.to);
    return lane === undefined || to < from
      ? undefined
      : [toPixel(time, (from + to) / 2), area.top + lane.topPx + lane.heightPx / 2];
  };
  const lines = hazards.value.map(({ said: { arrow = [] } }) => {
    const [from, to] = arrow.map(middleOf);
    return from && to && drawArrow(drawing, theme.alarm, 2.5, from, to);
  });
  context.restore();
  return (x, y) => {
    context.lineWidth = REACHED_PX;
    return hazards.value.find((_, place) => {
      const line = lines[place];
      return line && context.isPointInStroke(line, x * pixelRatio, y * pixelRatio);
    });
  };
}

/** Draws a line with a dot where it begins and a head where it ends; returns the line. */
function drawArrow(
  { context, theme }: Drawing,
  colour: string,
  widthPx: number,
  [fromX, fromY]: Point,
  [toX, toY]: Point,
): Path2D {
  const line = new Path2D();
  line.moveTo(fromX, fromY);
  line.lineTo(toX, toY);
  const share = HEAD_PX / (Math.hypot(toX - fromX, toY - fromY) || 1);
  const right = (toX - fromX) * share;
  const down = (toY - fromY) * share;
  const marks = new Path2D();
  marks.arc(fromX, fromY, widthPx + 1, 0, 2 * Math.PI);
  marks.moveTo(toX, toY);
  marks.lineTo(toX - right + down / 2, toY - down - right / 2);
  marks.lineTo(toX - right - down / 2, toY - down + right / 2);
  marks.closePath();
  context.strokeStyle = theme.background;
  context.lineWidth = 2;
  context.stroke(marks);
  context.lineWidth += widthPx;
  context.stroke(line);
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = widthPx;
  context.stroke(line);
  context.fill(marks);
  return line;
}
