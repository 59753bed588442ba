import { RowsByKey } from "../base/rows_by_key.ts";
import type { Table } from "../wire/table.ts";
import { rowsOf } from "../wire/table_rows.ts";

/** CUDA calls on the host, in the order they came. */
export class ApiCalls extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  name: ["name", "whole"],
  thread: ["thread", "whole"],
  correlation: ["correlation", "whole"],
  stack: ["stack", "whole"],
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
