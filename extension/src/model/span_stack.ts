import { columnsOf } from "../base/growing.ts";
import { countBelow } from "../base/search.ts";
import { SpanRow } from "./span_row.ts";

/** Spans in columns, in any order. */
export interface Spans {
  readonly fromNs: ArrayLike<number>;
  /** Infinity where the end is not known yet. */
  readonly toNs: ArrayLike<number>;
  readonly kind: ArrayLike<number>;
  /** Rows of the tables that the spans come from. */
  readonly source: ArrayLike<number>;
}

/** Spans that are collected to be added to a stack at once. */
export class SpanList
  extends columnsOf({ fromNs: "number", toNs: "number", kind: "byte", source: "index" })
  implements Spans
{
  push(fromNs: number, toNs: number, kind: number, source: number): void {
    this.put({ fromNs, toNs, kind, source });
  }

  /** Adds spans; all that were added are shown. */
  append(spans: Spans): void {
    this.columns.fromNs.append(spans.fromNs);
    this.columns.toNs.append(spans.toNs);
    this.columns.kind.append(spans.kind);
    this.columns.source.append(spans.source);
    this.show();
  }

  /** Moves all spans to a stack. */
  moveTo(stack: SpanStack): void {
    this.show();
    stack.append(this);
    this.truncate(0);
  }
}

/** Spans that may overlap, in as few rows as keep them apart; what is inside another lies below. */
export class SpanStack {
  readonly #rows: SpanRow[] = [];

  get rows(): readonly SpanRow[] {
    return this.#rows;
  }

  get count(): number {
    return this.#rows.reduce((sum, row) => sum + row.count, 0);
  }

  /** Adds spans, as late as they may come; those that begin after all others cost the least. */
  append(spans: Spans): void {
    if (spans.fromNs.length > 0) {
      const order = sortedPlaces(spans);
      this.#place(spans, order, spans.fromNs[order[0] ?? 0] ?? 0);
    }
  }

  /** Gives an end to a span that had none; what comes after it is placed anew. */
  end(kind: number, source: number, toNs: number): void {
    for (const row of this.#rows) {
      if (row.end(kind, source, toNs)) {
        this.#place(new SpanList(), new Int32Array(), toNs);
        return;
      }
    }
  }

  /** Places spans, and those anew that begin at a time or later. */
  #place(spans: Spans, order: Int32Array<ArrayBuffer>, timeNs: number): void {
    const moved = this.#cutFrom(timeNs);
    const isLate = moved.fromNs.length > 0;
    if (isLate) {
      moved.append(spans);
    }
    const { fromNs, toNs, kind, source } = isLate ? moved : spans;
    for (const place of isLate ? sortedPlaces(moved) : order) {
      const begin = fromNs[place] ?? 0;
      const end = Math.max(toNs[place] ?? 0, begin);
      this.#rowFreeAt(begin).push(begin, end, kind[place] ?? 0, source[place] ?? 0);
    }
  }

  #rowFreeAt(timeNs: number): SpanRow {
    for (const row of this.#rows) {
      if (row.endNs <= timeNs) {
        return row;
      }
    }
    const row = new SpanRow();
    this.#rows.push(row);
    return row;
  }

  /** Takes out every span that begins at a time or later. */
  #cutFrom(timeNs: number): SpanList {
    const taken = new SpanList();
    for (const row of this.#rows) {
      const kept = countBelow(row.fromNs, timeNs);
      if (kept < row.count) {
        taken.append({
          fromNs: row.fromNs.subarray(kept),
          toNs: row.toNs.subarray(kept),
          kind: row.kind.subarray(kept),
          source: row.source.subarray(kept),
        });
        row.truncate(kept);
      }
    }
    return taken;
  }
}

/** The places of spans by their begin, the longer first where they begin together. */
function sortedPlaces({ fromNs, toNs }: Spans): Int32Array<ArrayBuffer> {
  const order = new Int32Array(fromNs.length);
  for (let place = 0; place < order.length; place += 1) {
    order[place] = place;
  }
  const compare = (left: number, right: number): number =>
    (fromNs[left] ?? 0) - (fromNs[right] ?? 0) || longerFirst(toNs[left], toNs[right]);
  const isSorted = order.every((place) => place === 0 || compare(place - 1, place) <= 0);
  return isSorted ? order : order.sort(compare);
}

/** Two that have no end are as long as each other. */
function longerFirst(left = 0, right = 0): number {
  return left === right ? 0 : right - left;
}
