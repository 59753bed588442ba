import type { Lane } from "../model/lane.ts";
import type { SpanRow } from "../model/span_row.ts";

/** A row of a lane and where it lies below the top of the plot area, in CSS pixels. */
export interface PlacedRow {
  readonly row: SpanRow;
  readonly topPx: number;
  readonly heightPx: number;
  /** What the ids of its spans begin with. */
  readonly firstId: number;
}

export interface PlacedLane {
  readonly lane: Lane;
  readonly topPx: number;
  readonly heightPx: number;
  readonly rows: readonly PlacedRow[];
}

/** The heading of a group of lanes, above the first of them. */
export interface LaneHeading {
  readonly title: string;
  readonly topPx: number;
}

export interface LaneLayout {
  readonly lanes: readonly PlacedLane[];
  readonly headings: readonly LaneHeading[];
  readonly heightPx: number;
  /** Whether one lane shows when all streams of the device were idle. */
  readonly hasAllIdle: boolean;
}

export interface SpanInRow {
  readonly row: SpanRow;
  readonly span: number;
}

/** In CSS pixels; rows are lower the more there are in a lane. */
interface Measures {
  readonly gap: number;
  readonly leastLane: number;
  readonly row: (rows: number) => number;
}

const ROOMY: Measures = {
  gap: 8,
  leastLane: 28,
  row: (rows) => (rows === 1 ? 24 : rows <= 4 ? 17 : rows <= 10 ? 10 : 5),
};
const DENSE: Measures = {
  gap: 4,
  leastLane: 15,
  row: (rows) => (rows === 1 ? 14 : rows <= 4 ? 9 : rows <= 10 ? 6 : 3),
};
const COMFORTABLE_PX = 520;
const ROW_GAP_PX = 1;
export const HEADING_PX = 15;

/** With more a drawing is higher than browsers can make one. */
export const MOST_LANES = 300;

/** The lanes in their order; of too many those with most spans, streams first. */
function busiest(lanes: readonly Lane[]): readonly Lane[] {
  if (lanes.length <= MOST_LANES) {
    return lanes;
  }
  const weight = ({ stream, stack }: Lane): number =>
    (stream === undefined ? 0 : 1e9) + stack.count;
  const sorted = lanes.toSorted((left, right) => weight(right) - weight(left));
  const kept = new Set(sorted.slice(0, MOST_LANES));
  return lanes.filter((lane) => kept.has(lane));
}

/**
 * Stacks lanes from above, each as high as its rows need, closer where there is little room.
 *
 * Idle gaps take the whole height of their lane, for nothing else is in it then.
 */
export function layOutLanes(
  lanes: readonly Lane[],
  gapsOf: GapsOf = () => undefined,
  roomPx = COMFORTABLE_PX,
  inOrder: (lanes: readonly Lane[]) => readonly Lane[] = (all) => all,
): LaneLayout {
  const all = inOrder(withDevice(busiest(lanes), gapsOf()));
  const roomy = stackLanes(all, ROOMY, gapsOf);
  if (roomy.heightPx <= roomPx) {
    return roomy;
  }
  const dense = stackLanes(all, DENSE, gapsOf);
  const share = Math.max((roomPx - dense.heightPx) / (roomy.heightPx - dense.heightPx), 0);
  return share === 0 ? dense : stackLanes(all, between(DENSE, ROOMY, share), gapsOf);
}

function between(least: Measures, most: Measures, share: number): Measures {
  const mix = (from: number, to: number): number => from + share * (to - from);
  return {
    gap: mix(least.gap, most.gap),
    leastLane: mix(least.leastLane, most.leastLane),
    row: (rows) => mix(least.row(rows), most.row(rows)),
  };
}

/** The idle gaps of a stream, or of all of the device, where they are shown. */
type GapsOf = (stream?: number) => SpanRow | undefined;

/** With a lane above the streams that shows when none of them had anything to do. */
function withDevice(lanes: readonly Lane[], gaps: SpanRow | undefined): readonly Lane[] {
  const first = lanes.findIndex((lane) => lane.stream !== undefined);
  const { group } = lanes[first] ?? {};
  const streams = lanes.filter((lane) => lane.stream !== undefined && lane.group === group);
  if (gaps === undefined || streams.length < 2) {
    return lanes;
  }
  const stack = { rows: [gaps], count: gaps.count };
  const idle = { title: "all streams idle", stream: undefined, stack };
  return lanes.toSpliced(first, 0, group === undefined ? idle : { ...idle, group });
}

function isAllIdle({ stream, stack }: Lane, gapsOf: GapsOf): boolean {
  return stream === undefined && stack.rows[0] !== undefined && stack.rows[0] === gapsOf();
}

function stackLanes(lanes: readonly Lane[], measures: Measures, gapsOf: GapsOf): LaneLayout {
  let topPx = measures.gap / 2;
  let firstId = 0;
  const headings: LaneHeading[] = [];
  const placed = lanes.map((lane) => {
    if (lane.group !== undefined && lane.group !== headings.at(-1)?.title) {
      headings.push({ title: lane.group, topPx });
      topPx += HEADING_PX;
    }
    const shown = lane.stack.rows.filter((row) => row.count > 0);
    const rowPx = measures.row(shown.length);
    const heightPx = Math.max(rowPx * shown.length, measures.leastLane);
    const begin = topPx + (heightPx - rowPx * shown.length) / 2;
    const rows = shown.map((row, place) => {
      const at = { row, topPx: begin + place * rowPx, heightPx: rowPx - ROW_GAP_PX, firstId };
      firstId += row.count;
      return at;
    });
    const gaps = lane.stream === undefined ? undefined : gapsOf(lane.stream);
    if (gaps !== undefined) {
      rows.unshift({ row: gaps, topPx, heightPx, firstId });
      firstId += gaps.count;
    }
    const result = { lane, topPx, heightPx, rows };
    topPx += heightPx + measures.gap;
    return result;
  });
  return {
    lanes: placed,
    headings,
    heightPx: Math.max(topPx, measures.leastLane),
    hasAllIdle: lanes.some((lane) => isAllIdle(lane, gapsOf)),
  };
}

/** The span with an id of the raster, without the 1 that ids are larger by. */
export function spanWithId(layout: LaneLayout, id: number): SpanInRow | undefined {
  for (const lane of layout.lanes) {
    for (const { row, firstId } of lane.rows) {
      if (id >= firstId && id < firstId + row.count) {
        return { row, span: id - firstId };
      }
    }
  }
  return undefined;
}
