import { OPEN, RangeKind } from "./ranges.ts";
import { spanKindOfRange } from "./span_kinds.ts";
import type { SpanRow } from "./span_row.ts";
import { SpanStack } from "./span_stack.ts";
import type { Work } from "./work.ts";

/** The notebook cells, or without any the outermost ranges: what a recording is divided by. */
export function findBands({ ranges }: Work, endNs: number): SpanRow | undefined {
  const { kind, parent, fromNs, toNs } = ranges;
  const rows = [...kind.keys()];
  const cells = rows.filter((row) => kind[row] === RangeKind.cell);
  const chosen = cells.length > 0 ? cells : rows.filter((row) => parent[row] === 0);
  const stack = new SpanStack();
  stack.append({
    fromNs: chosen.map((row) => fromNs[row] ?? 0),
    toNs: chosen.map((row) => (toNs[row] === OPEN ? endNs : (toNs[row] ?? 0))),
    kind: chosen.map((row) => spanKindOfRange(kind[row] ?? 0)),
    source: chosen,
  });
  return stack.rows[0];
}
