import type { PickleValue } from "../wire/pickle_value.ts";
import {
  dictOf,
  END_OF_MEMORY,
  failAt,
  listOf,
  MOST_DEVICES,
  sizeOf,
  textOf,
  wordOf,
  type Place,
  type RowBudget,
} from "./snapshot_values.ts";
import { SegmentKind } from "./torch_events.ts";
import type { TorchPools } from "./torch_pools.ts";
import type { TorchStacks } from "./torch_stacks.ts";

export type BlockState = "inactive" | "active_allocated" | "active_pending_free";

export interface TorchBlock {
  address: number;
  size: number;
  requestedSize: number;
  state: BlockState;
  stack: number;
}

export interface TorchSegment {
  device: number;
  address: number;
  size: number;
  stream: number;
  /** An id of `TorchPools`. */
  pool: number;
  kind: number;
  isExpandable: boolean;
  stack: number;
  readonly blocks: TorchBlock[];
}

/** How memory was when the snapshot was taken. */
export class TorchSegments {
  readonly all: TorchSegment[] = [];
  /** Segments of host memory, which are left out. */
  hostCount = 0;
  readonly #stacks: TorchStacks;
  readonly #pools: TorchPools;

  constructor(stacks: TorchStacks, pools: TorchPools) {
    this.#stacks = stacks;
    this.#pools = pools;
  }

  read(segments: PickleValue, budget: RowBudget): void {
    const place: Place = { list: "segments" };
    for (const [position, values] of listOf(segments, place).entries()) {
      place.position = position;
      const items = dictOf(values, place);
      budget.take(items.length, place);
      this.#readSegment(items, place, budget);
    }
  }

  #readSegment(items: readonly PickleValue[], place: Place, budget: RowBudget): void {
    const segment: TorchSegment = {
      device: 0,
      address: 0,
      size: 0,
      stream: 0,
      pool: 0,
      kind: SegmentKind.unknown,
      isExpandable: false,
      stack: 0,
      blocks: [],
    };
    let blocks: PickleValue;
    for (let index = 0; index + 1 < items.length; index += 2) {
      const value = items[index + 1];
      if (items[index] === "blocks") {
        blocks = value;
      } else {
        this.#take(segment, items[index], value, place);
      }
    }
    if (segment.device < 0) {
      this.hostCount += 1;
      return;
    }
    if (segment.device >= MOST_DEVICES) {
      failAt(place, "device", `an ordinal below ${MOST_DEVICES}`);
    }
    if (segment.size === 0) {
      failAt(place, "total_size", "a positive integer");
    }
    if (segment.address >= END_OF_MEMORY) {
      failAt(place, "address", "below 2**60");
    }
    this.all.push(segment);
    this.#readBlocks(segment, listOf(blocks, place, "blocks"), place, budget);
  }

  #take(segment: TorchSegment, key: PickleValue, value: PickleValue, place: Place): void {
    switch (key) {
      case "device":
        segment.device = typeof value === "number" ? value : MOST_DEVICES;
        break;
      case "address":
        segment.address = wordOf(value, place, "address");
        break;
      case "total_size":
        segment.size = sizeOf(value, place, "total_size");
        break;
      case "stream":
        segment.stream = value === undefined ? 0 : wordOf(value, place, "stream");
        break;
      case "segment_type": {
        const name = textOf(value, place, "segment_type");
        if (name === "small" || name === "large") {
          segment.kind = SegmentKind[name];
        }
        break;
      }
      case "segment_pool_id":
        segment.pool = this.#pools.idOf(value, place);
        break;
      case "is_expandable":
        segment.isExpandable = value === true;
        break;
      case "frames":
        segment.stack = this.#stacks.idOf(value, place);
        break;
    }
  }

  #readBlocks(
    segment: TorchSegment,
    blocks: readonly PickleValue[],
    { list, position }: Place,
    budget: RowBudget,
  ): void {
    const end = segment.address + segment.size;
    let next = segment.address;
    const place: Place = { list, inner: "blocks" };
    if (position !== undefined) {
      place.position = position;
    }
    for (const [innerPosition, values] of blocks.entries()) {
      place.innerPosition = innerPosition;
      const items = dictOf(values, place);
      budget.take(items.length, place);
      const block = this.#blockOf(items, next, place);
      next = block.address + block.size;
      if (block.address < segment.address || block.address >= end || next > end) {
        failAt(place, "", "the block to lie inside its segment");
      }
      segment.blocks.push(block);
    }
  }

  #blockOf(items: readonly PickleValue[], next: number, place: Place): TorchBlock {
    const block: TorchBlock = {
      address: 0,
      size: 0,
      requestedSize: NaN,
      state: "inactive",
      stack: 0,
    };
    let history: PickleValue;
    for (let index = 0; index + 1 < items.length; index += 2) {
      const value = items[index + 1];
      if (items[index] === "history") {
        history = value;
      } else {
        this.#takeOfBlock(block, items[index], value, place);
      }
    }
    if (block.address >= END_OF_MEMORY) {
      failAt(place, "address", "below 2**60");
    }
    if (history !== undefined) {
      this.#readHistory(listOf(history, place, "history"), block, place);
    }
    if (block.size === 0) {
      failAt(place, "size", "a positive integer");
    }
    block.address = block.address === 0 ? next : block.address;
    block.requestedSize = Number.isNaN(block.requestedSize) ? block.size : block.requestedSize;
    return block;
  }

  #takeOfBlock(block: TorchBlock, key: PickleValue, value: PickleValue, place: Place): void {
    switch (key) {
      case "address":
      case "addr":
        block.address = wordOf(value, place, "address");
        break;
      case "size":
        block.size = sizeOf(value, place, "size");
        break;
      case "requested_size":
        block.requestedSize = sizeOf(value, place, "requested_size");
        break;
      case "state":
        block.state = stateOf(value, place);
        break;
      case "frames":
        block.stack = this.#stacks.idOf(value, place);
        break;
    }
  }

  /** Until torch 2.0 a block had what was allocated in it, the newest first, instead of frames. */
  #readHistory([newest]: readonly PickleValue[], block: TorchBlock, place: Place): void {
    const items = newest === undefined ? [] : dictOf(newest, place, "history");
    for (let index = 0; index + 1 < items.length; index += 2) {
      const value = items[index + 1];
      if (items[index] === "real_size" && Number.isNaN(block.requestedSize)) {
        block.requestedSize = sizeOf(value, place, "real_size");
      }
      if (items[index] === "frames" && block.stack === 0) {
        block.stack = this.#stacks.idOf(value, place);
      }
    }
  }
}

function stateOf(value: PickleValue, place: Place): BlockState {
  const name = textOf(value, place, "state");
  switch (name) {
    case "inactive":
    case "active_allocated":
    case "active_pending_free":
      return name;
    // The documentation has this name, the allocator writes the one before.
    case "active_awaiting_free":
      return "active_pending_free";
    default:
      return failAt(place, "state", "inactive, active_allocated or active_pending_free");
  }
}
