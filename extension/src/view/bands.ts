import { toPixel, type Scale } from "../base/scale.ts";
import type { SpanRow } from "../model/span_row.ts";
import { line, setText } from "./axes.ts";
import { cutText } from "./lane_frames.ts";
import type { Drawing } from "./plot.ts";

const NARROWEST_PX = 5;
/** Edges of narrower ones would cover what is drawn. */
const NARROWEST_EDGED_PX = 24;
const NARROWEST_NAMED_PX = 12;
/** Less of a name says nothing. */
const LEAST_LETTERS = 6;
const TINT = 0.07;
const PADDING_PX = 4;
/** Between the parts of a name, of which the last ones are left out where there is no room. */
export const SEPARATOR = " · ";

/** The cells, ranges or iterations that a recording is divided by, through a chart. */
export class Bands {
  readonly #rowOf: () => SpanRow | undefined;
  readonly #nameOf: (row: SpanRow, span: number) => string;

  constructor(rowOf: () => SpanRow | undefined, nameOf: (row: SpanRow, span: number) => string) {
    this.#rowOf = rowOf;
    this.#nameOf = nameOf;
  }

  get row(): SpanRow | undefined {
    return this.#rowOf();
  }

  /** A tint behind what is drawn. */
  drawGround(drawing: Drawing, time: Scale): void {
    const { context, area, theme } = drawing;
    context.save();
    context.globalAlpha = TINT;
    context.fillStyle = theme.text;
    for (const { fromPx, toPx } of this.#wide(drawing, time)) {
      context.fillRect(fromPx, area.top, toPx - fromPx, area.height);
    }
    context.restore();
  }

  /** Where they begin and end, over what is drawn. */
  drawEdges(drawing: Drawing, time: Scale): void {
    const { context, area, theme } = drawing;
    context.save();
    context.strokeStyle = theme.muted;
    context.lineWidth = 1;
    context.setLineDash([2, 3]);
    const right = area.left + area.width;
    const wide = this.#wide(drawing, time);
    for (const { fromPx, toPx } of wide.filter(
      (each) => each.toPx - each.fromPx >= NARROWEST_EDGED_PX,
    )) {
      for (const x of [fromPx, toPx].filter((edge) => edge > area.left && edge < right)) {
        const sharp = Math.round(x) + 0.5;
        line(context, sharp, area.top, sharp, area.top + area.height);
      }
    }
    context.restore();
  }

  drawNames(drawing: Drawing, time: Scale): void {
    const { context, area, theme } = drawing;
    context.save();
    setText(context, "left", "11px", "top");
    for (const { fromPx, toPx, span } of this.#wide(drawing, time)) {
      const { row } = this;
      if (row !== undefined && toPx - fromPx >= NARROWEST_NAMED_PX) {
        const widthPx = toPx - fromPx - 2 * PADDING_PX;
        const parts = this.#nameOf(row, span).split(SEPARATOR);
        while (parts.length > 1 && context.measureText(parts.join(SEPARATOR)).width > widthPx) {
          parts.pop();
        }
        const text = cutText(context, parts.join(SEPARATOR), widthPx);
        if (text === parts[0] || text.length > LEAST_LETTERS) {
          context.fillStyle = theme.text;
          context.fillText(text, fromPx + PADDING_PX, area.top + 3);
        }
      }
    }
    context.restore();
  }

  /** Those wide enough to be told apart, cut where the plot ends. */
  #wide({ area }: Drawing, time: Scale): { fromPx: number; toPx: number; span: number }[] {
    const { row } = this;
    if (row === undefined) {
      return [];
    }
    const { span: shown } = row.columns(time.from, time.to, Math.ceil(area.width / NARROWEST_PX));
    const right = area.left + area.width;
    return [...new Set(shown)].flatMap((span) => {
      const fromPx = Math.max(toPixel(time, row.fromNs[span] ?? 0), area.left);
      const toPx = Math.min(toPixel(time, row.toNs[span] ?? 0), right);
      return span >= 0 && toPx - fromPx >= NARROWEST_PX ? [{ fromPx, toPx, span }] : [];
    });
  }
}
