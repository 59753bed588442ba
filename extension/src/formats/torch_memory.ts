import { AddressMap } from "../base/address_map.ts";
import { SegmentKind } from "./torch_events.ts";
import type { TorchSegment } from "./torch_segments.ts";

/** What the driver gave: a segment, or a run of mapped pages. */
export interface Home {
  readonly address: number;
  size: number;
  readonly stream: number;
  /** As in `memory_events`. */
  readonly pool: number;
  readonly stack: number;
  readonly isExpandable: boolean;
}

/** A block in use. */
export interface Live {
  readonly address: number;
  size: number;
  readonly requestedSize: number;
  readonly stream: number;
  readonly pool: number;
  readonly stack: number;
  isPending: boolean;
  /** Whether the size is certain. */
  isExact: boolean;
  /** The size if it was split off. */
  readonly least: number;
  /** Where the next block began, the closest of its lifetime. */
  limit: number;
}

export function areAlike(left: Home, right: Home): boolean {
  return (
    left.size === right.size &&
    left.stream === right.stream &&
    left.pool === right.pool &&
    left.isExpandable === right.isExpandable
  );
}

/** The memory of one device at a moment. */
export class TorchMemory {
  readonly homes = new AddressMap<Home>();
  readonly lives = new AddressMap<Live>();
  /** Events that cannot have happened as the trace has them. */
  contradictions = 0;

  /** As segments have it; `poolOf` gives the pool as in `memory_events`. */
  constructor(
    segments: readonly TorchSegment[],
    poolOf: (pool: number, isLarge: boolean) => number,
  ) {
    for (const segment of segments) {
      const { address, size, stream, stack, isExpandable } = segment;
      const pool = poolOf(segment.pool, segment.kind === SegmentKind.large);
      if (segment.kind !== SegmentKind.unknown) {
        this.homes.set({ address, size, stream, pool, stack, isExpandable });
      }
      for (const block of segment.blocks) {
        if (block.state !== "inactive") {
          this.lives.set({
            address: block.address,
            size: block.size,
            requestedSize: Math.min(block.requestedSize, block.size),
            stream,
            pool,
            stack: block.stack,
            isPending: block.state === "active_pending_free",
            isExact: true,
            least: block.size,
            limit: block.address + block.size,
          });
        }
      }
    }
  }

  homeOf(address: number): Home | undefined {
    const home = this.homes.upTo(address);
    return home !== undefined && home.address + home.size > address ? home : undefined;
  }

  isTaken(address: number, end: number): boolean {
    return (this.lives.overlapping(address)?.address ?? Infinity) < end;
  }

  isReserved(address: number, end: number): boolean {
    return (this.homes.overlapping(address)?.address ?? Infinity) < end;
  }

  /** Where the free memory behind an address ends, in its home. */
  freeUntil(home: Home, address: number): number {
    const next = this.lives.after(address)?.address ?? Infinity;
    return Math.min(home.address + home.size, next);
  }

  forgetLive(address: number, end: number): void {
    let block = this.lives.overlapping(address);
    while (block !== undefined && block.address < end) {
      this.contradictions += 1;
      this.lives.delete(block);
      block = this.lives.after(block.address);
    }
  }

  /** Adds mapped pages, to the runs that they touch. */
  addRun(run: Home): void {
    const touches = (other: Home | undefined): other is Home =>
      other?.isExpandable === true && other.stream === run.stream && other.pool === run.pool;
    let { size } = run;
    const next = this.homes.at(run.address + size);
    if (touches(next)) {
      size += next.size;
      this.homes.delete(next);
    }
    const previous = run.address > 0 ? this.homeOf(run.address - 1) : undefined;
    if (touches(previous)) {
      previous.size += size;
    } else {
      this.homes.set({ ...run, size });
    }
  }

  /** Takes pages out of the run that has them all; false where none has. */
  cutRun(address: number, end: number): boolean {
    const run = this.homeOf(address);
    const runEnd = run === undefined ? 0 : run.address + run.size;
    if (run?.isExpandable !== true || end <= address || runEnd < end) {
      return false;
    }
    const rest = { ...run, address: end, size: runEnd - end };
    if (address > run.address) {
      run.size = address - run.address;
    } else {
      this.homes.delete(run);
    }
    if (end < runEnd) {
      this.homes.set(rest);
    }
    return true;
  }
}
