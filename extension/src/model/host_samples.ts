import type { ArrowTable } from "../wire/arrow.ts";
import { HOST_STATES, HostState } from "../wire/codes.ts";
import { rowsOf } from "../wire/table_rows.ts";
import { SpanKind } from "./span_kinds.ts";

const OF_STATE: Readonly<Record<number, number>> = {
  [HostState.waiting]: SpanKind.hostPause,
  [HostState.gil]: SpanKind.hostPause,
  [HostState.collection]: SpanKind.collection,
};

/** The text of each row of a table, which arrives later than the row. */
class RowTexts {
  readonly #texts: string[] = [];

  append(table: ArrowTable): void {
    for (const text of table.texts("text")) {
      this.#texts.push(text);
    }
  }

  /** The text of a row; empty while it is unknown. */
  get(row: number): string {
    return this.#texts[row] ?? "";
  }
}

/** What threads did between two of their CUDA calls, in the order it came. */
export class HostSamples extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  thread: ["thread", "whole"],
  stack: ["stack", "whole"],
  state: ["state", HOST_STATES],
}) {
  /** What each was, as `gpuviz.analysis` found it. */
  readonly work = new RowTexts();

  kindOf(row: number): number {
    return OF_STATE[this.state[row] ?? 0] ?? SpanKind.hostCode;
  }
}
