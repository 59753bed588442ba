import { RowsByKey } from "../base/rows_by_key.ts";
import type { Table } from "../wire/table.ts";
import { rowsOf } from "../wire/table_rows.ts";

/** In the order of `DICTIONARIES` in gpuviz/recording/tables.py. */
export const ACCESS_MODES = ["unknown", "read", "write", "read_write"] as const;

/** Which launch got a pointer into which block, in the order they came. */
export class LaunchBlocks extends rowsOf({
  correlation: ["correlation", "whole"],
  // Where the block begins.
  block: ["block", "number"],
  mode: ["mode", ACCESS_MODES],
}) {
  readonly byCorrelation = new RowsByKey();

  override append(table: Table): void {
    const first = this.count;
    super.append(table);
    this.byCorrelation.append(this.correlation.subarray(first));
  }

  override reserve(rows: number): void {
    super.reserve(rows);
    this.byCorrelation.reserve(rows);
  }
}
