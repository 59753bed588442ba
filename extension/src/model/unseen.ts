import type { ArrowTable } from "../wire/arrow.ts";

/** A time in which streams were not recorded. */
export interface UnseenSpan {
  readonly fromNs: number;
  readonly toNs: number;
}

/** When it is not known what the GPUs did, as `gpuviz.analysis.unseen` found it. */
export class Unseen {
  /** In order of time. */
  spans: readonly UnseenSpan[] = [];

  /** Takes all of them anew. */
  append(table: ArrowTable): void {
    const ends = table.numbers("end");
    const spans = Array.from(table.numbers("time"), (fromNs, row) => ({
      fromNs,
      toNs: ends[row] ?? fromNs,
    }));
    this.spans = spans;
  }

  /** How much of a window it is. */
  timeIn(fromNs: number, toNs: number): number {
    return this.spans.reduce(
      (sum, span) => sum + Math.max(Math.min(span.toNs, toNs) - Math.max(span.fromNs, fromNs), 0),
      0,
    );
  }
}
