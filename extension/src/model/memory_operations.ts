import type { Lane } from "./lane.ts";
import { MEMORIES, MEMORY_OPERATIONS, MemoryOperation } from "../wire/codes.ts";
import { SpanKind } from "./span_kinds.ts";
import { SpanStack } from "./span_stack.ts";
import { rowsOf } from "../wire/table_rows.ts";

/** Allocations and releases that CUDA carried out, whoever asked, in the order they came. */
export class MemoryOperations extends rowsOf({
  fromNs: ["time", "number"],
  // They take no time.
  toNs: ["time", "number"],
  operation: ["operation", MEMORY_OPERATIONS],
  memory: ["memory", MEMORIES],
  address: ["address", "number"],
  bytes: ["bytes", "number"],
  device: ["device", "whole"],
  correlation: ["correlation", "whole"],
  // The name of the library that asked.
  source: ["source", "whole"],
}) {
  readonly #lanes = new Map<number, { readonly lane: Lane; readonly count: number }>();

  /** Where the memory is, such as `device` or `pinned`; empty if unknown. */
  memoryOf(row: number): string {
    return MEMORIES[this.memory[row] ?? 0] ?? "";
  }

  kindOf(row: number): number {
    return this.operation[row] === MemoryOperation.release ? SpanKind.release : SpanKind.allocation;
  }

  /** A lane of those on a device, undefined where there are none. */
  laneOf(device: number): Lane | undefined {
    const known = this.#lanes.get(device);
    if (known?.count === this.count) {
      return known.lane;
    }
    const rows = [...this.device.keys()].filter((row) => this.device[row] === device);
    if (rows.length === 0) {
      return undefined;
    }
    const times = rows.map((row) => this.fromNs[row] ?? 0);
    const kind = rows.map((row) => this.kindOf(row));
    const stack = new SpanStack();
    stack.append({ fromNs: times, toNs: times, kind, source: rows });
    const lane = { title: "CUDA memory", stream: undefined, stack };
    this.#lanes.set(device, { lane, count: this.count });
    return lane;
  }
}
