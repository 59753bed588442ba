import { toPixel, type Scale } from "../base/scale.ts";
import { countBelow } from "../base/search.ts";
import type { Highlighted, Selected } from "../model/selected.ts";
import { isActivity, SpanKind } from "../model/span_kinds.ts";
import type { SpanRow } from "../model/span_row.ts";
import type { LaneLayout, PlacedRow } from "./lane_layout.ts";
import type { HighlightedBox } from "./highlighted_marks.ts";
import type { Drawing } from "./plot.ts";

/** Where the spans that are highlighted lie: their places in each row, ascending. */
export type HighlightedSpans = ReadonlyMap<PlacedRow, readonly number[]>;

/** A search for one costs as much as a look at this many. */
const SEARCH_COST = 64;

export function findHighlightedSpans(
  layout: LaneLayout,
  { activities }: Highlighted,
  selected: Selected | undefined,
  timesOf: (selected: Selected) => { readonly fromNs: number },
): HighlightedSpans {
  const spanKind = SpanKind.kernel;
  const highlighted = [...activities].map((row): Selected => ({ kind: "span", spanKind, row }));
  const wanted = selected === undefined ? highlighted : [...highlighted, selected];
  const times = wanted.map((span) => timesOf(span).fromNs);
  const found = new Map<PlacedRow, readonly number[]>();
  for (const placed of layout.lanes.flatMap((lane) => lane.rows)) {
    const { row } = placed;
    const isFew = wanted.length * SEARCH_COST < row.count;
    found.set(placed, isFew ? searched(row, wanted, times) : scanned(row, activities, selected));
  }
  return found;
}

function isMeant(row: SpanRow, place: number, span: Selected): boolean {
  const kind = row.kind[place] ?? 0;
  if (span.kind === "gap") {
    return kind === SpanKind.idle && row.fromNs[place] === span.gap.fromNs;
  }
  return (
    span.kind === "span" &&
    row.source[place] === span.row &&
    (kind === span.spanKind || (isActivity(kind) && isActivity(span.spanKind)))
  );
}

/** The places of some spans in a row, each looked for among those that begin when it does. */
function searched(row: SpanRow, wanted: readonly Selected[], times: readonly number[]): number[] {
  const { fromNs } = row;
  const places = new Set<number>();
  for (const [index, span] of wanted.entries()) {
    const begin = times[index] ?? 0;
    for (let place = countBelow(fromNs, begin); fromNs[place] === begin; place += 1) {
      if (isMeant(row, place, span)) {
        places.add(place);
      }
    }
  }
  return [...places].sort((left, right) => left - right);
}

/** The same by a look at each span of the row. */
function scanned(
  row: SpanRow,
  activities: ReadonlySet<number>,
  selected: Selected | undefined,
): number[] {
  const { kind, source, count } = row;
  const places: number[] = [];
  for (let place = 0; place < count; place += 1) {
    const isHighlighted = isActivity(kind[place] ?? 0) && activities.has(source[place] ?? 0);
    if (isHighlighted || (selected !== undefined && isMeant(row, place, selected))) {
      places.push(place);
    }
  }
  return places;
}

/** Boxes around highlighted spans; those that touch on the screen share one. */
export function highlightedBoxes(
  drawing: Drawing,
  time: Scale,
  spans: HighlightedSpans,
): HighlightedBox[] {
  const { area } = drawing;
  const boxes: HighlightedBox[] = [];
  for (const [{ row, topPx, heightPx }, places] of spans) {
    let open: { from: number; to: number } | undefined;
    const close = (): void => {
      if (open !== undefined) {
        const { from, to } = open;
        boxes.push({ leftPx: from, topPx: area.top + topPx, widthPx: to - from, heightPx });
      }
    };
    for (const span of places) {
      const from = toPixel(time, row.fromNs[span] ?? 0);
      const to = toPixel(time, Math.min(row.toNs[span] ?? 0, time.to));
      if (to < area.left || from > area.left + area.width) {
        continue;
      }
      if (open !== undefined && from - open.to < 1) {
        open.to = to;
      } else {
        close();
        open = { from, to };
      }
    }
    close();
  }
  return boxes;
}
