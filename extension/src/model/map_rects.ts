import { NO_EVENT, type Blocks } from "./blocks.ts";
import type { Bytes, Floats, Indices, MemoryEvents } from "./events.ts";
import type { AddressLayout } from "./layout.ts";
import type { Segments } from "./segments.ts";

export const RectKind = { segment: 0, block: 1, pending: 2 } as const;

/** Rectangles of the segment map, in nanoseconds and stacked bytes, painted in this order. */
export interface MapRects {
  readonly count: number;
  readonly fromNs: Floats;
  readonly toNs: Floats;
  readonly fromByte: Floats;
  readonly toByte: Floats;
  readonly kind: Bytes;
  /** The index in `Segments` or `Blocks`. */
  readonly owner: Indices;
}

export function mapRects(
  events: MemoryEvents,
  segments: Segments,
  blocks: Blocks,
  layout: AddressLayout,
  endNs: number,
): MapRects {
  const rects = new RectColumns(segments.count + 2 * blocks.count);
  const timeOf = (row: number | undefined, missing: number): number =>
    row === undefined || row === NO_EVENT ? missing : (events.timeNs[row] ?? missing);
  for (let index = 0; index < segments.count; index += 1) {
    const begin = timeOf(segments.begun[index], 0);
    const end = timeOf(segments.ended[index], endNs);
    const from = layout.offsetOf(segments.from[index] ?? 0);
    const size = (segments.to[index] ?? 0) - (segments.from[index] ?? 0);
    rects.push(begin, end, from, from + size, RectKind.segment, index);
  }
  for (let index = 0; index < blocks.count; index += 1) {
    const begin = timeOf(blocks.allocated[index], 0);
    const end = timeOf(blocks.freeCompleted[index], endNs);
    const from = layout.offsetOf(blocks.address[index] ?? 0);
    const to = from + (blocks.size[index] ?? 0);
    const inUseUntil = isFreedAtOnce(blocks, index)
      ? end
      : timeOf(blocks.freeRequested[index], end);
    rects.push(begin, inUseUntil, from, to, RectKind.block, index);
    if (inUseUntil < end) {
      rects.push(inUseUntil, end, from, to, RectKind.pending, index);
    }
  }
  return rects.view();
}

/** Whether nothing happened on the device between the request to free and its completion. */
export function isFreedAtOnce(blocks: Blocks, block: number): boolean {
  const request = blocks.freeRequested[block] ?? NO_EVENT;
  return request !== NO_EVENT && blocks.freeCompleted[block] === request + 1;
}

class RectColumns {
  readonly #capacity: number;
  readonly #edges: readonly [Floats, Floats, Floats, Floats];
  readonly #kind: Bytes;
  readonly #owner: Indices;
  #count = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    const edge = (): Floats => new Float64Array(this.#capacity);
    this.#edges = [edge(), edge(), edge(), edge()];
    this.#kind = new Uint8Array(capacity);
    this.#owner = new Int32Array(capacity);
  }

  push(
    fromNs: number,
    toNs: number,
    fromByte: number,
    toByte: number,
    kind: number,
    owner: number,
  ): void {
    const at = this.#count;
    const [from, to, low, high] = this.#edges;
    from[at] = fromNs;
    to[at] = toNs;
    low[at] = fromByte;
    high[at] = toByte;
    this.#kind[at] = kind;
    this.#owner[at] = owner;
    this.#count += 1;
  }

  view(): MapRects {
    const [from, to, low, high] = this.#edges;
    return {
      count: this.#count,
      fromNs: from.subarray(0, this.#count),
      toNs: to.subarray(0, this.#count),
      fromByte: low.subarray(0, this.#count),
      toByte: high.subarray(0, this.#count),
      kind: this.#kind.subarray(0, this.#count),
      owner: this.#owner.subarray(0, this.#count),
    };
  }
}
