import { Action, type Floats, type Indices, type MemoryEvents } from "./events.ts";

/** No such event: allocated before the first event, or never freed. */
export const NO_EVENT = -1;

/** The blocks of a device, one for each allocation, as columns. */
export interface Blocks {
  readonly count: number;
  readonly address: Floats;
  readonly size: Floats;
  /** The rows of `MemoryEvents` that began and ended the block, or NO_EVENT. */
  readonly allocated: Indices;
  readonly freeRequested: Indices;
  readonly freeCompleted: Indices;
}

/** Joins each allocation with the free of the same address that follows it. */
export function findBlocks(events: MemoryEvents): Blocks {
  const capacity = countBlockRows(events);
  const address = new Float64Array(capacity);
  const size = new Float64Array(capacity);
  const allocated = new Int32Array(capacity).fill(NO_EVENT);
  const freeRequested = new Int32Array(capacity).fill(NO_EVENT);
  const freeCompleted = new Int32Array(capacity).fill(NO_EVENT);
  const live = new Map<number, number>();
  let count = 0;
  const begin = (row: number): number => {
    const at = events.address[row] ?? 0;
    address[count] = at;
    size[count] = events.size[row] ?? 0;
    live.set(at, count);
    count += 1;
    return count - 1;
  };
  for (let row = 0; row < events.count; row += 1) {
    const action = events.action[row];
    if (action === Action.alloc) {
      allocated[begin(row)] = row;
    } else if (action === Action.freeRequested) {
      freeRequested[live.get(events.address[row] ?? 0) ?? begin(row)] = row;
    } else if (action === Action.freeCompleted) {
      const at = events.address[row] ?? 0;
      freeCompleted[live.get(at) ?? begin(row)] = row;
      live.delete(at);
    }
  }
  return {
    count,
    address: address.subarray(0, count),
    size: size.subarray(0, count),
    allocated: allocated.subarray(0, count),
    freeRequested: freeRequested.subarray(0, count),
    freeCompleted: freeCompleted.subarray(0, count),
  };
}

function countBlockRows(events: MemoryEvents): number {
  let rows = 0;
  for (let row = 0; row < events.count; row += 1) {
    if ((events.action[row] ?? Infinity) <= Action.freeCompleted) {
      rows += 1;
    }
  }
  return rows;
}

/** Whether the block exists (in use, or its free still pending) after the event at `row`. */
export function isActiveAfter(blocks: Blocks, block: number, row: number): boolean {
  const end = blocks.freeCompleted[block] ?? NO_EVENT;
  return (blocks.allocated[block] ?? NO_EVENT) <= row && (end === NO_EVENT || end > row);
}

/** Whether the program has freed the block but a stream may still use it after the event at `row`. */
export function isPendingAfter(blocks: Blocks, block: number, row: number): boolean {
  const request = blocks.freeRequested[block] ?? NO_EVENT;
  return request !== NO_EVENT && request <= row && isActiveAfter(blocks, block, row);
}

/** The row whose stack, stream and pool describe the block. */
export function originOf(blocks: Blocks, block: number): number {
  const rows = [blocks.allocated[block], blocks.freeRequested[block], blocks.freeCompleted[block]];
  return rows.find((row) => row !== undefined && row !== NO_EVENT) ?? 0;
}
