import { Action } from "../model/events.ts";
import type { Live, TorchMemory } from "./torch_memory.ts";
import { MIB, SMALL_BUFFER, SMALL_SIZE } from "./torch_rounding.ts";
import type { TorchTrace } from "./torch_trace.ts";

const LARGE_PAGE = 20 * MIB;

/**
 * Goes back through a trace, from the memory at its end to what existed before.
 *
 * What it finds of allocations, `redo` needs: a size, or minus the most that it can be.
 */
export class Undo {
  readonly #trace: TorchTrace;
  readonly #memory: TorchMemory;

  constructor(trace: TorchTrace, memory: TorchMemory) {
    this.#trace = trace;
    this.#memory = memory;
  }

  all(first: number, last: number): void {
    for (let row = last - 1; row >= first; row -= 1) {
      switch (this.#trace.events.action.at(row)) {
        case Action.alloc:
          this.#undoAlloc(row);
          break;
        case Action.freeRequested:
          this.#undoFree(row, false);
          break;
        case Action.freeCompleted:
          this.#undoFree(row, true);
          break;
        case Action.segmentAlloc:
          this.#undoSegmentAlloc(row);
          break;
        case Action.segmentFree:
          this.#undoSegmentFree(row);
          break;
        case Action.segmentMap:
          this.#undoMap(row);
          break;
        case Action.segmentUnmap:
          this.#undoUnmap(row);
          break;
      }
    }
  }

  #undoAlloc(row: number): void {
    const block = this.#memory.lives.at(this.#trace.address(row));
    if (block === undefined) {
      this.#memory.contradictions += 1;
      return;
    }
    this.#trace.size[row] = block.isExact ? block.size : -(block.limit - block.address);
    this.#memory.lives.delete(block);
  }

  #undoFree(row: number, isCompleted: boolean): void {
    const { events } = this.#trace;
    const { lives } = this.#memory;
    const address = this.#trace.address(row);
    const known = lives.at(address);
    if (known !== undefined) {
      this.#memory.contradictions += isCompleted ? 1 : 0;
      known.isPending = isCompleted;
      return;
    }
    const size = this.#trace.rounded(row);
    if (!this.#makeRoom(address, address + size)) {
      this.#memory.contradictions += 1;
      return;
    }
    const block: Live = {
      address,
      size,
      requestedSize: events.size.at(row),
      stream: events.stream.at(row),
      pool: this.#memory.homeOf(address)?.pool ?? this.#trace.poolOf(row, size > SMALL_SIZE),
      stack: 0,
      isPending: isCompleted,
      isExact: events.blockSize.at(row) > 0,
      least: size,
      limit: lives.after(address)?.address ?? Infinity,
    };
    const previous = lives.upTo(address);
    lives.set(block);
    this.#settle(block);
    if (previous !== undefined) {
      previous.limit = Math.min(previous.limit, address);
      this.#settle(previous);
    }
  }

  /** A block that was taken to reach further than it must gives that up for one that began there. */
  #makeRoom(address: number, end: number): boolean {
    const before = this.#memory.lives.overlapping(address);
    if (before === undefined || before.address >= end) {
      return true;
    }
    if (before.isExact || before.address + before.least > address) {
      return false;
    }
    before.size = before.least;
    before.isExact = true;
    return !this.#memory.isTaken(address, end);
  }

  /**
   * A large pool has no block of 1 MiB or less, taken or free: a smaller gap belongs to the block
   * before it.
   */
  #settle(block: Live): void {
    const home = this.#memory.homeOf(block.address);
    if (block.isExact || home === undefined || home.isExpandable || home.pool % 2 === 0) {
      return;
    }
    const limit = this.#memory.freeUntil(home, block.address);
    const gap = limit - (block.address + block.size);
    if (gap > 0 && gap <= MIB) {
      block.size = limit - block.address;
    }
  }

  #undoSegmentAlloc(row: number): void {
    const home = this.#memory.homes.at(this.#trace.address(row));
    if (home === undefined || home.isExpandable) {
      this.#memory.contradictions += 1;
      this.#trace.pool[row] = this.#segmentPool(row);
      return;
    }
    this.#trace.pool[row] = home.pool;
    this.#memory.forgetLive(home.address, home.address + home.size);
    this.#memory.homes.delete(home);
  }

  #undoSegmentFree(row: number): void {
    this.#bringBack(row, this.#segmentPool(row), false);
  }

  #undoMap(row: number): void {
    const address = this.#trace.address(row);
    const end = this.#trace.end(row);
    const home = this.#memory.homeOf(address);
    this.#trace.pool[row] = home?.isExpandable === true ? home.pool : this.#runPool(row, true);
    this.#memory.forgetLive(address, end);
    this.#memory.contradictions += this.#memory.cutRun(address, end) ? 0 : 1;
  }

  #undoUnmap(row: number): void {
    this.#bringBack(row, this.#runPool(row, false), true);
  }

  #bringBack(row: number, pool: number, isExpandable: boolean): void {
    const { events } = this.#trace;
    const address = this.#trace.address(row);
    const size = events.size.at(row);
    this.#trace.pool[row] = pool;
    if (size === 0 || this.#memory.isReserved(address, address + size)) {
      this.#memory.contradictions += 1;
      return;
    }
    const home = { address, size, stream: events.stream.at(row), pool, stack: 0, isExpandable };
    if (isExpandable) {
      this.#memory.addRun(home);
    } else {
      this.#memory.homes.set(home);
    }
  }

  #segmentPool(row: number): number {
    return this.#trace.poolOf(row, this.#trace.events.size.at(row) !== SMALL_BUFFER);
  }

  /** Of the run that the pages touch; without one their size tells: pages of a small pool have 2 MiB. */
  #runPool(row: number, isMapped: boolean): number {
    const { events } = this.#trace;
    const address = this.#trace.address(row);
    const stream = events.stream.at(row);
    const right = this.#memory.homes.at(this.#trace.end(row));
    const left = address > 0 ? this.#memory.homeOf(address - 1) : undefined;
    for (const run of [right, left]) {
      if (run?.isExpandable === true && run.stream === stream) {
        return run.pool;
      }
    }
    const size = events.size.at(row);
    return this.#trace.poolOf(row, isMapped ? size !== SMALL_BUFFER : size % LARGE_PAGE === 0);
  }
}
