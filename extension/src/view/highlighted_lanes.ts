import { toPixel, type Scale } from "../base/scale.ts";
import { countBelow } from "../base/search.ts";
import type { Highlighted, Selected } from "../model/selected.ts";
import { isActivity, SpanKind } from "../model/span_kinds.ts";
import type { SpanRow } from "../model/span_row.ts";
import type { LaneLayout, PlacedRow } from "./lane_layout.ts";
import type { Drawing, PlotArea } from "./plot.ts";

/** Where the spans that are highlighted lie: their places in each row, ascending. */
export type HighlightedSpans = ReadonlyMap<PlacedRow, readonly number[]>;

/** A search for one costs as much as a look at this many. */
const SEARCH_COST = 64;

export function findHighlightedSpans(
  layout: LaneLayout,
  { activities, spans }: Highlighted,
  timesOf: (selected: Selected) => { readonly fromNs: number },
): HighlightedSpans {
  const spanKind = SpanKind.kernel;
  const lit = [...activities].map((row): Selected => ({ kind: "span", spanKind, row }));
  const wanted = [...lit, ...spans];
  const meantIn = meantBy(wanted);
  const times = wanted.map((span) => timesOf(span).fromNs);
  const found = new Map<PlacedRow, readonly number[]>();
  for (const placed of layout.lanes.flatMap((lane) => lane.rows)) {
    const { row } = placed;
    const isFew = wanted.length * SEARCH_COST < row.count;
    const places = isFew ? placesAt(row, times) : [...row.kind.keys()];
    found.set(placed, places.filter(meantIn(row)));
  }
  return found;
}

/** Whether one of some spans is at a place of a row; takes the row once for all of its places. */
function meantBy(wanted: readonly Selected[]): (row: SpanRow) => (place: number) => boolean {
  const gaps = new Map<number, number>();
  const rows = new Map<number, Set<number>>();
  const kindOf = (kind: number): number => (isActivity(kind) ? SpanKind.kernel : kind);
  for (const span of wanted) {
    if (span.kind === "gap") {
      gaps.set(span.gap.fromNs, span.gap.toNs);
    } else if (span.kind === "span") {
      const kind = kindOf(span.spanKind);
      rows.set(kind, (rows.get(kind) ?? new Set()).add(span.row));
    }
  }
  return ({ kind, source, fromNs, toNs }) =>
    (place) =>
      kind[place] === SpanKind.idle
        ? gaps.get(fromNs[place] ?? 0) === toNs[place]
        : (rows.get(kindOf(kind[place] ?? 0))?.has(source[place] ?? 0) ?? false);
}

/** The places of a row that begin at one of some times, ascending. */
function placesAt({ fromNs }: SpanRow, times: readonly number[]): number[] {
  const places = new Set<number>();
  for (const begin of times) {
    for (let place = countBelow(fromNs, begin); fromNs[place] === begin; place += 1) {
      places.add(place);
    }
  }
  return [...places].sort((left, right) => left - right);
}

/** Boxes around highlighted spans; those that touch on the screen share one. */
export function highlightedBoxes(
  drawing: Drawing,
  time: Scale,
  spans: HighlightedSpans,
): PlotArea[] {
  const { area } = drawing;
  const boxes: PlotArea[] = [];
  for (const [{ row, topPx, heightPx }, places] of spans) {
    let open: { from: number; to: number } | undefined;
    const close = (): void => {
      if (open !== undefined) {
        const { from, to } = open;
        boxes.push({ left: from, top: area.top + topPx, width: to - from, height: heightPx });
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
