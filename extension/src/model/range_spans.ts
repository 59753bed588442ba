import { OPEN, type Ranges } from "./ranges.ts";
import { spanKindOfRange } from "./span_kinds.ts";
import type { SpanStack, SpanList } from "./span_stack.ts";

/** Ranges in stacks of spans; one that is open has no end until it is known. */
export class RangeSpans {
  readonly #ranges: Ranges;
  readonly #open = new Map<number, SpanStack>();

  constructor(ranges: Ranges) {
    this.#ranges = ranges;
  }

  /** Ends the spans of ranges that have ended since. */
  endClosed(): void {
    const { kind, toNs } = this.#ranges;
    for (const [row, stack] of this.#open) {
      const end = toNs[row] ?? OPEN;
      if (end !== OPEN) {
        stack.end(spanKindOfRange(kind[row] ?? 0), row, end);
        this.#open.delete(row);
      }
    }
  }

  /** Adds a range to spans that will be added to a stack. */
  add(row: number, spans: SpanList, stack: SpanStack): void {
    const { fromNs, toNs, kind } = this.#ranges;
    const end = toNs[row] ?? OPEN;
    spans.push(
      fromNs[row] ?? 0,
      end === OPEN ? Infinity : end,
      spanKindOfRange(kind[row] ?? 0),
      row,
    );
    if (end === OPEN) {
      this.#open.set(row, stack);
    }
  }
}
