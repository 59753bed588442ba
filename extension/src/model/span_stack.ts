import { countBelow } from "../base/search.ts";
import { SpanRow } from "./span_row.ts";

/** Spans in columns, in any order. */
export interface Spans {
  readonly fromNs: ArrayLike<number>;
  readonly toNs: ArrayLike<number>;
  readonly kind: ArrayLike<number>;
  /** Rows of the tables that the spans come from. */
  readonly source: ArrayLike<number>;
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
    const order = sortedPlaces(spans);
    const earliest = spans.fromNs[order[0] ?? 0] ?? Infinity;
    const moved = this.#cutFrom(earliest);
    const all = moved.fromNs.length === 0 ? spans : joined(moved, spans);
    for (const place of moved.fromNs.length === 0 ? order : sortedPlaces(all)) {
      const fromNs = all.fromNs[place] ?? 0;
      const toNs = Math.max(all.toNs[place] ?? 0, fromNs);
      this.#rowFreeAt(fromNs).push(fromNs, toNs, all.kind[place] ?? 0, all.source[place] ?? 0);
    }
  }

  #rowFreeAt(timeNs: number): SpanRow {
    let row = this.#rows.find((candidate) => candidate.endNs <= timeNs);
    if (row === undefined) {
      row = new SpanRow();
      this.#rows.push(row);
    }
    return row;
  }

  /** Takes out every span that begins at a time or later. */
  #cutFrom(timeNs: number): Taken {
    const taken: Taken = { fromNs: [], toNs: [], kind: [], source: [] };
    for (const row of this.#rows) {
      const kept = countBelow(row.fromNs, timeNs);
      row.fromNs.subarray(kept).forEach((value) => taken.fromNs.push(value));
      row.toNs.subarray(kept).forEach((value) => taken.toNs.push(value));
      row.kind.subarray(kept).forEach((value) => taken.kind.push(value));
      row.source.subarray(kept).forEach((value) => taken.source.push(value));
      row.truncate(kept);
    }
    return taken;
  }
}

type Taken = Record<keyof Spans, number[]>;

function joined(left: Taken, right: Spans): Spans {
  return {
    fromNs: left.fromNs.concat(Array.from(right.fromNs)),
    toNs: left.toNs.concat(Array.from(right.toNs)),
    kind: left.kind.concat(Array.from(right.kind)),
    source: left.source.concat(Array.from(right.source)),
  };
}

/** The places of spans by their begin, the longer first where they begin together. */
function sortedPlaces({ fromNs, toNs }: Spans): Int32Array<ArrayBuffer> {
  const order = Int32Array.from({ length: fromNs.length }, (_, place) => place);
  const compare = (left: number, right: number): number =>
    (fromNs[left] ?? 0) - (fromNs[right] ?? 0) || (toNs[right] ?? 0) - (toNs[left] ?? 0);
  const isSorted = order.every((place) => place === 0 || compare(place - 1, place) <= 0);
  return isSorted ? order : order.sort(compare);
}
