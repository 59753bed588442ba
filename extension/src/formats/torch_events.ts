import { GrowingBytes, GrowingFloats, GrowingWholes } from "../base/growing.ts";
import { Action } from "../model/events.ts";
import type { PickleValue } from "../wire/pickle_value.ts";
import {
  dictOf,
  END_OF_MEMORY,
  failAt,
  listOf,
  MOST_DEVICES,
  sizeOf,
  textOf,
  timeOf,
  wordOf,
  type Place,
  type RowBudget,
} from "./snapshot_values.ts";
import type { TorchPools } from "./torch_pools.ts";
import type { TorchStacks } from "./torch_stacks.ts";

const LONGEST_NAME = 40;

export const SegmentKind = { small: 0, large: 1, unknown: 2 } as const;

/** torch's TraceEntry::Action; record_stream and empty_cache are gpuviz's own. */
const ACTIONS = new Map<string, readonly number[]>([
  ["alloc", [Action.alloc]],
  ["free", [Action.freeRequested, Action.freeCompleted]],
  ["free_requested", [Action.freeRequested]],
  ["free_completed", [Action.freeCompleted]],
  ["segment_alloc", [Action.segmentAlloc]],
  ["segment_free", [Action.segmentFree]],
  ["segment_map", [Action.segmentMap]],
  ["segment_unmap", [Action.segmentUnmap]],
  ["oom", [Action.outOfMemory]],
  ["snapshot", [Action.snapshot]],
  ["annotate", [Action.annotate]],
  ["user_defined", [Action.annotate]],
  ["record_stream", [Action.recordStream]],
  ["empty_cache", [Action.emptyCache]],
]);

interface Event {
  action: string | undefined;
  address: number;
  size: number;
  requestedSize: number | undefined;
  blockSize: number;
  stream: number;
  timeUs: number;
  pool: number;
  kind: number;
  stack: number;
  metadata: string;
  isSynthetic: boolean;
}

/** What happened, device by device, each in the order in which it happened. */
export class TorchEvents {
  readonly action = new GrowingBytes();
  readonly device = new GrowingWholes();
  /** Of oom: free bytes of the device. */
  readonly address = new GrowingFloats();
  /** As in the file: what the caller asked for, or the segment's. */
  readonly size = new GrowingFloats();
  /** 0 where the file does not say. */
  readonly blockSize = new GrowingFloats();
  readonly stream = new GrowingFloats();
  /** Since 1970; 0 where the file does not say. */
  readonly timeUs = new GrowingFloats();
  /** An id of `TorchPools`. */
  readonly pool = new GrowingWholes();
  readonly kind = new GrowingBytes();
  readonly stack = new GrowingWholes();
  /** The user's, empty where there is none. */
  readonly metadata: string[] = [];
  /** What is not read, and how often. */
  readonly leftOut = new Map<string, number>();
  readonly #stacks: TorchStacks;
  readonly #pools: TorchPools;

  constructor(stacks: TorchStacks, pools: TorchPools) {
    this.#stacks = stacks;
    this.#pools = pools;
  }

  get count(): number {
    return this.action.length;
  }

  /** Takes the traces of all devices. */
  read(traces: PickleValue, budget: RowBudget): void {
    const devices = listOf(traces, { list: "device_traces" });
    if (devices.length > MOST_DEVICES) {
      failAt({ list: "device_traces" }, "", `a list of at most ${MOST_DEVICES} devices`);
    }
    for (const [device, trace] of devices.entries()) {
      const place: Place = { list: "device_traces", position: device };
      const events = trace === undefined ? [] : listOf(trace, place);
      for (const [position, event] of events.entries()) {
        place.innerPosition = position;
        const items = dictOf(event, place);
        budget.take(items.length, place);
        this.#push(device, this.#eventOf(items, place), place);
      }
    }
  }

  #eventOf(items: readonly PickleValue[], place: Place): Event {
    const event: Event = {
      action: undefined,
      address: 0,
      size: 0,
      requestedSize: undefined,
      blockSize: 0,
      stream: 0,
      timeUs: 0,
      pool: 0,
      kind: SegmentKind.unknown,
      stack: 0,
      metadata: "",
      isSynthetic: false,
    };
    for (let index = 0; index + 1 < items.length && !event.isSynthetic; index += 2) {
      this.#take(event, items[index], items[index + 1], place);
    }
    return event;
  }

  #take(event: Event, key: PickleValue, value: PickleValue, place: Place): void {
    switch (key) {
      case "action":
        event.action = textOf(value, place, "action");
        break;
      case "addr":
      case "device_free":
        event.address = wordOf(value, place, "addr");
        break;
      case "size":
        event.size = sizeOf(value, place, "size");
        break;
      case "stream":
        event.stream = value === undefined ? 0 : wordOf(value, place, "stream");
        break;
      case "time_us":
        event.timeUs = timeOf(value, place);
        break;
      case "pool_id":
        event.pool = this.#pools.idOf(value, place);
        break;
      case "frames":
        event.stack = this.#stacks.idOf(value, place);
        break;
      case "user_metadata":
        event.metadata = typeof value === "string" ? value : "";
        break;
      default:
        takeOwn(event, key, value, place);
    }
  }

  #push(device: number, event: Event, place: Place): void {
    if (event.isSynthetic) {
      return;
    }
    if (event.action === undefined) {
      failAt(place, "action", "there");
    }
    if (event.address >= END_OF_MEMORY) {
      failAt(place, "addr", "below 2**60");
    }
    // gpuviz's own, of failed requests, of which torch tells only what they came to.
    const { requestedSize } = event;
    const actions = ACTIONS.get(event.action);
    if (actions === undefined) {
      const what = `events of the unknown action "${event.action.slice(0, LONGEST_NAME)}"`;
      this.leftOut.set(what, (this.leftOut.get(what) ?? 0) + 1);
      return;
    }
    for (const action of actions) {
      this.action.push(action);
      this.device.push(device);
      this.address.push(event.address);
      this.size.push(requestedSize ?? event.size);
      this.blockSize.push(requestedSize === undefined ? event.blockSize : event.size);
      this.stream.push(event.stream);
      this.timeUs.push(event.timeUs);
      this.pool.push(event.pool);
      this.kind.push(event.kind);
      this.stack.push(event.stack);
      this.metadata.push(event.metadata);
    }
  }
}

/** What gpuviz adds to torch's form. */
function takeOwn(event: Event, key: PickleValue, value: PickleValue, place: Place): void {
  switch (key) {
    case "requested_size":
      event.requestedSize = sizeOf(value, place, "requested_size");
      break;
    case "block_size":
      event.blockSize = sizeOf(value, place, "block_size");
      break;
    case "pool_is_large":
      if (typeof value === "boolean") {
        event.kind = value ? SegmentKind.large : SegmentKind.small;
      }
      break;
    case "synthetic":
      event.isSynthetic = true;
      break;
  }
}
