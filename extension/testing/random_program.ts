import { Action } from "../src/wire/codes.ts";
import { seeded } from "./seeded.ts";
import type { MemoryEvents } from "../src/model/events.ts";

export interface EventRow {
  readonly timeNs: number;
  readonly action: number;
  readonly address: number;
  readonly size: number;
  readonly requestedSize?: number;
  readonly stream?: number;
  readonly stack?: number;
  readonly framework?: number;
}

export function eventsOf(rows: readonly EventRow[], initialCount = 0): MemoryEvents {
  const floats = (value: (row: EventRow) => number): Float64Array<ArrayBuffer> =>
    Float64Array.from(rows, value);
  return {
    count: rows.length,
    initialCount,
    timeNs: floats((row) => row.timeNs),
    action: Uint8Array.from(rows, (row) => row.action),
    address: floats((row) => row.address),
    size: floats((row) => row.size),
    requestedSize: floats((row) => row.requestedSize ?? row.size),
    stream: Uint32Array.from(rows, (row) => row.stream ?? 1),
    pool: Uint32Array.from(rows, () => 1),
    stack: Uint32Array.from(rows, (row) => row.stack ?? 0),
    framework: Uint8Array.from(rows, (row) => row.framework ?? 0),
    isShared: new Set(rows.map((row) => row.framework ?? 0)).size > 1,
  };
}

/** Allocations and frees, some of them pending, in slots of segments that are added and freed. */
export function randomProgram(seed: number, count: number): EventRow[] {
  const random = seeded(seed);
  const pick = (limit: number): number => Math.floor(random() * limit);
  const slots = new Map<number, "inUse" | "pending">();
  const segments = new Map<number, number>();
  const rows: EventRow[] = [];
  let timeNs = 0;
  const push = (action: number, address: number, size: number, requestedSize: number): void => {
    timeNs += pick(3) * 100;
    rows.push({ timeNs, action, address, size, requestedSize, stack: pick(5) });
  };
  while (rows.length < count) {
    const segment = 10_000 * (1 + pick(4));
    const address = segment + 1000 * pick(8);
    const state = slots.get(address);
    const isEmpty = ![...slots.keys()].some((slot) => slot >= segment && slot < segment + 8000);
    if (!segments.has(segment)) {
      segments.set(segment, 8000);
      push(Action.segment_alloc, segment, 8000, 0);
    } else if (isEmpty && random() < 0.2) {
      segments.delete(segment);
      push(Action.segment_free, segment, 8000, 0);
    } else if (state === undefined) {
      slots.set(address, "inUse");
      push(Action.alloc, address, 1000, 1 + pick(1000));
    } else if (state === "inUse") {
      const size = rows.findLast((row) => row.address === address)?.requestedSize ?? 0;
      push(Action.free_requested, address, 1000, size);
      slots.set(address, "pending");
      if (random() < 0.7) {
        slots.delete(address);
        push(Action.free_completed, address, 1000, size);
      }
    } else {
      slots.delete(address);
      push(Action.free_completed, address, 1000, 0);
    }
  }
  return rows;
}
