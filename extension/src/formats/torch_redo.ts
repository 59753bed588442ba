import { Action } from "../model/events.ts";
import { SegmentKind } from "./torch_events.ts";
import type { Home, TorchMemory } from "./torch_memory.ts";
import { LEAST_BLOCK, SMALL_SIZE } from "./torch_rounding.ts";
import type { TorchTrace } from "./torch_trace.ts";

/** Goes forward through a trace, from what existed before, and finds the size of each block. */
export class Redo {
  readonly #trace: TorchTrace;
  readonly #memory: TorchMemory;
  /** Whether the setting is on, as far as events tell. */
  #isExpandable = false;

  constructor(trace: TorchTrace, memory: TorchMemory) {
    this.#trace = trace;
    this.#memory = memory;
  }

  all(first: number, last: number): void {
    const { events, pool } = this.#trace;
    for (let row = first; row < last; row += 1) {
      const action = events.action.at(row);
      this.#noticeSetting(action, row);
      switch (action) {
        case Action.alloc:
          this.#redoAlloc(row);
          break;
        case Action.freeRequested:
        case Action.freeCompleted:
        case Action.recordStream:
        case Action.annotate:
          this.#redoFree(action, row);
          break;
        case Action.outOfMemory:
          pool[row] = this.#trace.poolOf(row, events.size.at(row) > SMALL_SIZE);
          break;
        case Action.segmentAlloc:
        case Action.segmentMap:
          this.#redoSegment(row, action === Action.segmentMap);
          break;
        case Action.segmentFree:
          this.#redoSegmentFree(row);
          break;
        case Action.segmentUnmap:
          if (this.#memory.cutRun(this.#trace.address(row), this.#trace.end(row))) {
            this.#memory.forgetLive(this.#trace.address(row), this.#trace.end(row));
          }
          break;
      }
    }
  }

  /**
   * With expandable segments on, torch makes no others, and with them off it takes nothing of those
   * that it has.
   */
  #noticeSetting(action: number, row: number): void {
    if (action === Action.segmentMap) {
      this.#isExpandable = true;
    } else if (action === Action.segmentAlloc) {
      this.#isExpandable = false;
    } else if (action === Action.alloc && !this.#isExpandable) {
      this.#isExpandable = this.#memory.homeOf(this.#trace.address(row))?.isExpandable === true;
    }
  }

  #redoAlloc(row: number): void {
    const { events } = this.#trace;
    const address = this.#trace.address(row);
    const home = this.#memory.homeOf(address);
    const found = this.#trace.size[row] ?? 0;
    const isExact = found > 0;
    let size = isExact ? found : this.#trace.rounded(row);
    this.#memory.forgetLive(address, address + Math.max(size, 1));
    if (!isExact && events.blockSize.at(row) === 0) {
      size = this.#splitSize(row, home, found < 0 ? -found : Infinity);
    }
    const pool =
      home !== undefined && events.kind.at(row) === SegmentKind.unknown
        ? home.pool
        : this.#trace.poolOf(row, size > SMALL_SIZE);
    this.#trace.size[row] = size;
    this.#trace.pool[row] = pool;
    this.#memory.lives.set({
      address,
      size,
      requestedSize: events.size.at(row),
      stream: events.stream.at(row),
      pool,
      stack: events.stack.at(row),
      isPending: false,
      isExact,
      least: size,
      limit: 0,
    });
  }

  /** As torch splits the free block that the address lies in; `most`: the most that it can be. */
  #splitSize(row: number, home: Home | undefined, most: number): number {
    const address = this.#trace.address(row);
    const size = this.#trace.rounded(row);
    if (home === undefined) {
      return size;
    }
    const whole = this.#memory.freeUntil(home, address) - address;
    if (whole <= size || whole > most) {
      return size;
    }
    const rest = whole - size;
    const isFine = this.#isExpandable || home.isExpandable || home.pool % 2 === 0;
    const isSplit = isFine
      ? rest >= LEAST_BLOCK
      : rest > SMALL_SIZE && size < this.#trace.rounding.maxSplitSize;
    return isSplit ? size : whole;
  }

  #redoFree(action: number, row: number): void {
    const { events, size, pool } = this.#trace;
    const block = this.#memory.lives.at(this.#trace.address(row));
    if (block === undefined) {
      size[row] = events.size.at(row) === 0 ? 0 : this.#trace.rounded(row);
      return;
    }
    size[row] = block.size;
    pool[row] = block.pool;
    if (action === Action.freeRequested) {
      block.isPending = true;
    } else if (action === Action.freeCompleted) {
      this.#memory.lives.delete(block);
    }
  }

  #redoSegment(row: number, isExpandable: boolean): void {
    const { events } = this.#trace;
    const home = {
      address: this.#trace.address(row),
      size: events.size.at(row),
      stream: events.stream.at(row),
      pool: this.#trace.pool[row] ?? 0,
      stack: events.stack.at(row),
      isExpandable,
    };
    if (home.size === 0) {
      return;
    }
    if (!isExpandable) {
      this.#memory.homes.set(home);
    } else if (!this.#memory.isReserved(home.address, home.address + home.size)) {
      this.#memory.addRun(home);
    }
  }

  #redoSegmentFree(row: number): void {
    const known = this.#memory.homes.at(this.#trace.address(row));
    if (known !== undefined && !known.isExpandable) {
      this.#memory.forgetLive(known.address, known.address + known.size);
      this.#memory.homes.delete(known);
    }
  }
}
