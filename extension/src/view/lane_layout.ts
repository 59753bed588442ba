import type { Lane } from "../model/lanes.ts";
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

export interface LaneLayout {
  readonly lanes: readonly PlacedLane[];
  readonly heightPx: number;
}

const GAP_PX = 8;
const LEAST_LANE_PX = 28;
const ROW_GAP_PX = 1;

/** Stacks lanes from above, each as high as its rows need. */
export function layOutLanes(lanes: readonly Lane[]): LaneLayout {
  let topPx = GAP_PX / 2;
  let firstId = 0;
  const placed = lanes.map((lane) => {
    const shown = lane.stack.rows.filter((row) => row.count > 0);
    const rowPx = rowHeight(shown.length);
    const heightPx = Math.max(rowPx * shown.length, LEAST_LANE_PX);
    const begin = topPx + (heightPx - rowPx * shown.length) / 2;
    const rows = shown.map((row, place) => {
      const at = { row, topPx: begin + place * rowPx, heightPx: rowPx - ROW_GAP_PX, firstId };
      firstId += row.count;
      return at;
    });
    const result = { lane, topPx, heightPx, rows };
    topPx += heightPx + GAP_PX;
    return result;
  });
  return { lanes: placed, heightPx: Math.max(topPx, LEAST_LANE_PX) };
}

function rowHeight(rows: number): number {
  return rows === 1 ? 24 : rows <= 4 ? 17 : rows <= 10 ? 10 : 5;
}

/** The span with an id of the raster, without the 1 that ids are larger by. */
export function spanWithId(
  layout: LaneLayout,
  id: number,
): { readonly row: SpanRow; readonly span: number } | undefined {
  for (const lane of layout.lanes) {
    for (const { row, firstId } of lane.rows) {
      if (id >= firstId && id < firstId + row.count) {
        return { row, span: id - firstId };
      }
    }
  }
  return undefined;
}
