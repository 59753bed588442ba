import {
  ACCESS_MODES,
  ACTIVITY_KINDS,
  COPY_KINDS,
  HOST_MEMORIES,
  MEMORIES,
} from "../wire/codes.ts";
import { rowsOf } from "../wire/table_rows.ts";

/** Kernels, copies, memsets, graph launches and ranges on streams, in the order they came. */
export class Activities extends rowsOf({
  fromNs: ["time", "number"],
  toNs: ["end", "number"],
  bytes: ["bytes", "whole"],
  kind: ["kind", ACTIVITY_KINDS],
  copyKind: ["copy_kind", COPY_KINDS],
  source: ["source", MEMORIES],
  destination: ["destination", MEMORIES],
  hostMemory: ["host_memory", HOST_MEMORIES, "optional"],
  name: ["name", "whole"],
  device: ["device", "whole"],
  stream: ["stream", "whole"],
  correlation: ["correlation", "whole"],
  graph: ["graph", "whole"],
  launch: ["launch", "whole"],
}) {
  /** The memories that a copy went between, such as `pageable` and `device`; empty if unknown. */
  memoriesOf(row: number): readonly [from: string, to: string] {
    const nameOf = (code: number | undefined): string => MEMORIES[code ?? 0] ?? "";
    return [nameOf(this.source[row]), nameOf(this.destination[row])];
  }

  /** The memory on the host's side of a copy; empty if there is none or it is unknown. */
  hostMemoryOf(row: number): string {
    return HOST_MEMORIES[this.hostMemory[row] ?? 0] ?? "";
  }
}

/** Which launch got a pointer into which block, in the order they came. */
export class LaunchBlocks extends rowsOf({
  correlation: ["correlation", "whole"],
  // Where the block begins.
  block: ["block", "number"],
  mode: ["mode", ACCESS_MODES],
}) {}

/** The block of each row of `LaunchBlocks`: the event of its device that allocated it, or -1. */
export class AccessedBlocks extends rowsOf({
  device: ["device", "number"],
  event: ["event", "number"],
}) {}
