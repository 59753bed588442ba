import type { ArrowTable } from "../wire/arrow.ts";
import { RANGE_KINDS } from "../wire/codes.ts";
import { rowsOf } from "../wire/table_rows.ts";

/** The end of a range that is still open. */
export const OPEN = -1;

/**
 * Notebook cells, `gpuviz.range`s, NVTX ranges and compilations on host threads, one row for each
 * id.
 */
export class Ranges extends rowsOf({
  fromNs: ["time", "number"],
  // The end, or OPEN.
  toNs: ["end", "number"],
  kind: ["kind", RANGE_KINDS],
  name: ["name", "whole"],
  thread: ["thread", "whole"],
  // The id of the range around each, or 0.
  parent: ["parent", "whole"],
}) {
  readonly #rowOfId = new Map<number, number>();

  /** Takes rows; one whose id is known already replaces it. */
  override append(table: ArrowTable): void {
    const values = this.read(table);
    table.numbers("id").forEach((id, source) => {
      const row = this.#rowOfId.get(id) ?? this.length;
      const own = Object.entries(values).map(([name, column]) => [name, column[source] ?? 0]);
      this.put(Object.fromEntries(own) as Record<string, number>, row);
      this.#rowOfId.set(id, row);
    });
    this.show();
  }
}
