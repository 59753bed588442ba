import { RowsByKey } from "../base/rows_by_key.ts";
import type { Table } from "../wire/table.ts";
import { rowsOf } from "../wire/table_rows.ts";

/** In the order of `DICTIONARIES` in gpuviz/recording/tables.py. */
const KINDS = ["kernel", "memcpy", "memset", "graph", "range"] as const;
const COPY_KINDS = [
  "",
  "host_to_device",
  "device_to_host",
  "device_to_device",
  "host_to_host",
  "peer_to_peer",
] as const;
const MEMORIES = ["", "pageable", "pinned", "device", "array", "managed"] as const;

export const ActivityKind = { kernel: 0, memcpy: 1, memset: 2, graph: 3, range: 4 } as const;
export const CopyKind = { hostToDevice: 1, deviceToHost: 2, deviceToDevice: 3 } as const;

/** Kernels, copies, memsets, graph launches and ranges on streams, in the order they came. */
export class Activities extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  bytes: ["bytes", "whole"],
  kind: ["kind", KINDS],
  copyKind: ["copy_kind", COPY_KINDS],
  source: ["source", MEMORIES],
  destination: ["destination", MEMORIES],
  name: ["name", "whole"],
  device: ["device", "whole"],
  stream: ["stream", "whole"],
  correlation: ["correlation", "whole"],
  graph: ["graph", "whole"],
  launch: ["launch", "whole"],
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

  /** The memories that a copy went between, such as `pageable` and `device`; empty if unknown. */
  memoriesOf(row: number): readonly [from: string, to: string] {
    const nameOf = (code: number | undefined): string => MEMORIES[code ?? 0] ?? "";
    return [nameOf(this.source[row]), nameOf(this.destination[row])];
  }
}
