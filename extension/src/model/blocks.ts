import { Action } from "../wire/codes.ts";
import { Extents } from "../base/extents.ts";
import { columnsOf, GrowingIndices } from "../base/growing.ts";
import { NOTHING, NumberMap } from "../base/number_map.ts";
import type { Indices, MemoryEvents } from "./events.ts";
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
  /** The columns' arrays while events are taken in. */
  #stores = this.#storesFor(0);
  #next = 0;
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
    const first = this.#ofRow.length;
    const ofRow = this.#ofRow.lengthen(events.count - first);
    this.#next = this.length;
    // Each event begins at most one block.
    this.#stores = this.#storesFor(events.count - first);
    for (let row = first; row < events.count; row += 1) {
      ofRow[row] = this.#take(events, row);
    }
    this.truncate(this.#next);
    this.show();
    this.extents.extend(this.fromNs, this.inUseUntilNs, this.count);
    this.pending.settle();
  }

  /** Calls `visit` with each change of what the program holds, for the rows in [first, last). */
  changesIn(
    { action }: MemoryEvents,
    first: number,
    last: number,
    visit: (block: number, bytes: number, row: number) => void,
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
        visit(block, bytes, row);
      } else if (request === row || request === NO_EVENT) {
        visit(block, -bytes, row);
      }
    }
  }

  #storesFor(added: number) {
    const { address, allocated, freeRequested, freeCompleted, fromNs, inUseUntilNs, size } =
      this.columns;
    size.lengthen(added);
    return {
      address: address.lengthen(added),
      allocated: allocated.lengthen(added),
      freeRequested: freeRequested.lengthen(added),
      freeCompleted: freeCompleted.lengthen(added),
      fromNs: fromNs.lengthen(added),
      inUseUntilNs: inUseUntilNs.lengthen(added),
    };
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
      return this.#begin(at, size, timeNs, row);
    }
    const known = this.#live.get(at);
    const block = known === NOTHING ? this.#begin(at, size, 0, NO_EVENT) : known;
    this.unannounced += known === NOTHING ? 1 : 0;
    if (action === Action.free_requested) {
      this.#request(block, row, timeNs, isCompletedNext(events, row, at));
    } else {
      this.#complete(block, row, timeNs);
      this.#live.delete(at);
    }
    return block;
  }

  #begin(address: number, size: number, timeNs: number, row: number): number {
    const stores = this.#stores;
    const block = this.#next;
    this.#next += 1;
    stores.address[block] = address;
    stores.allocated[block] = row;
    stores.freeRequested[block] = NO_EVENT;
    stores.freeCompleted[block] = NO_EVENT;
    stores.fromNs[block] = timeNs;
    stores.inUseUntilNs[block] = Infinity;
    this.columns.size.set(block, size);
    this.#live.set(address, block);
    return block;
  }

  #request(block: number, row: number, timeNs: number, isImmediate: boolean): void {
    const { freeRequested } = this.#stores;
    if (freeRequested[block] === NO_EVENT) {
      freeRequested[block] = row;
      this.#endUse(block, timeNs);
      if (!isImmediate) {
        this.pending.begin(block, timeNs);
      }
    }
  }

  #complete(block: number, row: number, timeNs: number): void {
    const { freeRequested, freeCompleted } = this.#stores;
    const request = freeRequested[block] ?? NO_EVENT;
    freeCompleted[block] = row;
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
    this.#stores.inUseUntilNs[block] = timeNs;
    this.extents.touch(block);
  }
}

/** Whether the event after a free request completes it: no stream was waited for. */
function isCompletedNext({ action, address }: MemoryEvents, row: number, at: number): boolean {
  return action[row + 1] === Action.free_completed && address[row + 1] === at;
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
  return (blocks.allocated[block] ?? NO_EVENT) <= row && row < endOfAllocation(blocks, block);
}

/** The row of the event that gave the block back; Infinity if none did. */
export function endOfAllocation(blocks: Blocks, block: number): number {
  const request = blocks.freeRequested[block] ?? NO_EVENT;
  const end = request === NO_EVENT ? (blocks.freeCompleted[block] ?? NO_EVENT) : request;
  return end === NO_EVENT ? Infinity : end;
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
