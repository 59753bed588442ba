import { RangeKind } from "../wire/codes.ts";
import { RangeSpans } from "./range_spans.ts";
import type { Ranges } from "./ranges.ts";
import type { SpanRow } from "./span_row.ts";
import { SpanList, SpanStack } from "./span_stack.ts";

/** The notebook cells, or without any the program's outermost ranges, by which it is divided. */
export class Divisions {
  readonly #ranges: Ranges;
  readonly #isOwn: (thread: number) => boolean;
  #stack = new SpanStack();
  #spans: RangeSpans;
  #taken = 0;
  #hasCells = false;

  /** `isOwn` leaves out the threads of other processes. */
  constructor(ranges: Ranges, isOwn: (thread: number) => boolean = () => true) {
    this.#ranges = ranges;
    this.#isOwn = isOwn;
    this.#spans = new RangeSpans(ranges);
    this.extend();
  }

  get row(): SpanRow | undefined {
    return this.#stack.rows[0];
  }

  /** Takes in what was added to the ranges; one that is still open has no end. */
  extend(): void {
    const { kind, parent, thread, count } = this.#ranges;
    if (!this.#hasCells && kind.subarray(this.#taken).includes(RangeKind.cell)) {
      this.#hasCells = true;
      this.#stack = new SpanStack();
      this.#spans = new RangeSpans(this.#ranges);
      this.#taken = 0;
    }
    this.#spans.endClosed();
    const added = new SpanList();
    for (let row = this.#taken; row < count; row += 1) {
      const own = kind[row] ?? RangeKind.range;
      const isOutermost = parent[row] === 0 && own !== RangeKind.load && own !== RangeKind.compile;
      if (!this.#isOwn(thread[row] ?? 0)) {
        continue;
      }
      if (this.#hasCells ? own === RangeKind.cell : isOutermost) {
        this.#spans.add(row, added, this.#stack);
      }
    }
    added.moveTo(this.#stack);
    this.#taken = count;
  }
}
