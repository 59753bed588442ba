import { toPixel, type Scale } from "../base/scale.ts";
import type { Lit, Picked } from "../model/picked.ts";
import { isActivity, SpanKind } from "../model/span_kinds.ts";
import type { LaneLayout, PlacedRow } from "./lane_layout.ts";
import type { LitBox } from "./lit_marks.ts";
import type { Drawing } from "./plot.ts";

/** Where the spans that are lit lie: their places in each row, ascending. */
export type LitSpans = ReadonlyMap<PlacedRow, readonly number[]>;

export function findLitSpans(layout: LaneLayout, lit: Lit, picked: Picked | undefined): LitSpans {
  const found = new Map<PlacedRow, number[]>();
  for (const placed of layout.lanes.flatMap((lane) => lane.rows)) {
    const { kind, source, count } = placed.row;
    const places: number[] = [];
    for (let span = 0; span < count; span += 1) {
      const code = kind[span] ?? 0;
      const row = source[span] ?? 0;
      const isGap =
        code === SpanKind.idle &&
        picked?.kind === "gap" &&
        placed.row.fromNs[span] === picked.gap.fromNs;
      const isSpan = picked?.kind === "span" && picked.spanKind === code && picked.row === row;
      if (isGap || isSpan || (isActivity(code) && lit.activities.has(row))) {
        places.push(span);
      }
    }
    found.set(placed, places);
  }
  return found;
}

/** Boxes around lit spans; those that touch on the screen share one. */
export function litBoxes(drawing: Drawing, time: Scale, spans: LitSpans): LitBox[] {
  const { area } = drawing;
  const boxes: LitBox[] = [];
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
      const to = toPixel(time, row.toNs[span] ?? 0);
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
