import { Extents } from "../base/extents.ts";
import { columnsOf, GrowingIndices } from "../base/growing.ts";
import { NOTHING, NumberMap } from "../base/number_map.ts";
import { Action, type Indices, type MemoryEvents } from "./events.ts";
import { PendingFrees } from "./pending_frees.ts";

/** No such event: allocated before the first event, or never freed. */
export const NO_EVENT = -1;

/** The blocks of a device, one for each allocation, as columns. */
export class Blocks extends columnsOf({
  address: "number",
  size: "whole",
  // The rows of `MemoryEvents` that began and ended the block, or NO_EVENT.
  allocated: "index",
  freeRequested: "index",
  freeCompleted: "index",
  // When it was allocated; 0 where that was before the first event.
  fromNs: "number",
  // Until when it was in use; Infinity where it still is.
  inUseUntilNs: "number",
}) {
  /** Those that were given back while a stream might still use them. */
  readonly pending = new PendingFrees();
  /** Of the times in use. */
  readonly extents = new Extents();
  readonly #live = new NumberMap();
  /** How many became known only when they were freed. */
  unannounced = 0;
  readonly #ofRow = new GrowingIndices(16);

  /** The block of the event at `row`, or NO_EVENT. */
  blockOf(row: number): number {
    return this.#ofRow.store[row] ?? NO_EVENT;
  }

  /** Reserves capacity for later events, half of which are allocations. */
  reserveEvents(count: number): void {
    this.#ofRow.reserve(count);
    this.reserve(count >>> 1);
  }

  /**
   * Joins each allocation with the free of the same address that follows it, in the events that
   * were added since the last call.
   */
  extend(events: MemoryEvents): void {
    for (let row = this.#ofRow.length; row < events.count; row += 1) {
      this.#ofRow.push(this.#take(events, row));
    }
    this.show();
    this.extents.extend(this.fromNs, this.inUseUntilNs, this.count);
    this.pending.settle();
  }

  /** Calls `visit` with each change of what the program holds, for the rows in [first, last). */
  changesIn(
    { action }: MemoryEvents,
    first: number,
    last: number,
    visit: (block: number, bytes: number) => void,
  ): void {
    const ofRow = this.#ofRow.store;
    const { allocated, freeRequested, size } = this;
    for (let row = first; row < last; row += 1) {
      const block = ofRow[row] ?? NO_EVENT;
      if (block === NO_EVENT || allocated[block] === NO_EVENT) {
        continue;
      }
      const bytes = size[block] ?? 0;
      const request = freeRequested[block];
      if (action[row] === Action.alloc) {
        visit(block, bytes);
      } else if (request === row || request === NO_EVENT) {
        visit(block, -bytes);
      }
    }
  }

  #take(events: MemoryEvents, row: number): number {
    const action = events.action[row] ?? NO_EVENT;
    if (action > Action.free_completed) {
      return NO_EVENT;
    }
    const at = events.address[row] ?? 0;
    const size = events.size[row] ?? 0;
    const timeNs = events.timeNs[row] ?? 0;
    if (action === Action.alloc) {
      const block = this.#begin(at, size, timeNs);
      this.columns.allocated.set(block, row);
      return block;
    }
    const known = this.#live.get(at);
    const block = known === NOTHING ? this.#begin(at, size, 0) : known;
    this.unannounced += known === NOTHING ? 1 : 0;
    if (action === Action.free_requested) {
      this.#request(block, row, timeNs);
    } else {
      this.#complete(block, row, timeNs);
      this.#live.delete(at);
    }
    return block;
  }

  #begin(address: number, size: number, timeNs: number): number {
    const block = this.length;
    this.put({
      address,
      size,
      allocated: NO_EVENT,
      freeRequested: NO_EVENT,
      freeCompleted: NO_EVENT,
      fromNs: timeNs,
      inUseUntilNs: Infinity,
    });
    this.#live.set(address, block);
    return block;
  }

  #request(block: number, row: number, timeNs: number): void {
    if (this.columns.freeRequested.at(block) === NO_EVENT) {
      this.columns.freeRequested.set(block, row);
      this.#endUse(block, timeNs);
      this.pending.begin(block, timeNs);
    }
  }

  #complete(block: number, row: number, timeNs: number): void {
    const { freeRequested, freeCompleted } = this.columns;
    const request = freeRequested.at(block);
    freeCompleted.set(block, row);
    if (request === NO_EVENT) {
      this.#endUse(block, timeNs);
    } else if (request === row - 1) {
      this.#endUse(block, timeNs);
      this.pending.undo(block);
    } else {
      this.pending.end(block, timeNs);
    }
  }

  #endUse(block: number, timeNs: number): void {
    this.columns.inUseUntilNs.set(block, timeNs);
    this.extents.touch(block);
  }
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

/** Whether the program holds the block after the event at `row`; a pending free is not held. */
export function isAllocatedAfter(blocks: Blocks, block: number, row: number): boolean {
  const request = blocks.freeRequested[block] ?? NO_EVENT;
  return isActiveAfter(blocks, block, row) && (request === NO_EVENT || request > row);
}

/** The row whose stack, stream and pool describe the block. */
export function originOf(blocks: Blocks, block: number): number {
  const allocated = blocks.allocated[block] ?? NO_EVENT;
  if (allocated !== NO_EVENT) {
    return allocated;
  }
  const request = blocks.freeRequested[block] ?? NO_EVENT;
  return request === NO_EVENT ? Math.max(blocks.freeCompleted[block] ?? 0, 0) : request;
}

/** The blocks that exist after the event at `row`, without a look at each that ever was. */
export function activeAfter(blocks: Blocks, events: MemoryEvents, row: number): number[] {
  const timeNs = events.timeNs[row] ?? 0;
  const { inUseUntilNs, pending } = blocks;
  const active: number[] = [];
  for (const [first, last] of blocks.extents.overlapping(timeNs, timeNs)) {
    for (let block = first; block < last; block += 1) {
      if ((inUseUntilNs[block] ?? 0) >= timeNs && isActiveAfter(blocks, block, row)) {
        active.push(block);
      }
    }
  }
  for (const [first, last] of pending.extents.overlapping(timeNs, timeNs)) {
    for (const block of pending.block.subarray(first, last)) {
      if ((inUseUntilNs[block] ?? 0) < timeNs && isActiveAfter(blocks, block, row)) {
        active.push(block);
      }
    }
  }
  return active;
}
