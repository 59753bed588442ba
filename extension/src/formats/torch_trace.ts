import { SegmentKind, type TorchEvents } from "./torch_events.ts";
import type { TorchRounding } from "./torch_rounding.ts";

/** The events of a snapshot, and what is found out about each of them. */
export class TorchTrace {
  readonly events: TorchEvents;
  readonly rounding: TorchRounding;
  /** Of each event: the block's or the segment's. */
  readonly size: Float64Array<ArrayBuffer>;
  /** Of each event, as in `memory_events`. */
  readonly pool: Uint32Array<ArrayBuffer>;
  readonly #owners: readonly number[];

  /** `owners`: the numbers of `TorchPools`. */
  constructor(events: TorchEvents, rounding: TorchRounding, owners: readonly number[]) {
    this.events = events;
    this.rounding = rounding;
    this.#owners = owners;
    this.size = new Float64Array(events.count);
    this.pool = new Uint32Array(events.count);
  }

  address(row: number): number {
    return this.events.address.at(row);
  }

  /** Where the event's segment ends. */
  end(row: number): number {
    return this.address(row) + this.events.size.at(row);
  }

  /** The size of the event's block, were it split off. */
  rounded(row: number): number {
    const size = this.events.blockSize.at(row);
    return size > 0 ? size : this.rounding.blockSize(this.events.size.at(row));
  }

  /** The pool that the event says; where it says no kind, of the guessed one. */
  poolOf(row: number, isLargeGuess: boolean): number {
    const kind = this.events.kind.at(row);
    const isLarge = kind === SegmentKind.unknown ? isLargeGuess : kind === SegmentKind.large;
    return this.code(this.events.pool.at(row), isLarge);
  }

  /** A pool of `TorchPools` as in `memory_events`. */
  readonly code = (pool: number, isLarge: boolean): number =>
    2 * (this.#owners[pool] ?? 0) + (isLarge ? 1 : 0);
}
