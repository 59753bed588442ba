import { GrowingFloats, GrowingWholes, type Wholes } from "../base/growing.ts";
import { NOTHING, NumberMap } from "../base/number_map.ts";
import { countBelow } from "../base/search.ts";
import { activeAfter, isAllocatedAfter, NO_EVENT, originOf } from "./blocks.ts";
import type { DeviceTimeline } from "./device_timeline.ts";

const KIB = 1024;
/** The ends of all steps but the last, in bytes and in ns. */
export const SIZE_LIMITS = [512, 4 * KIB, 64 * KIB, KIB ** 2, 16 * KIB ** 2, 256 * KIB ** 2];
export const AGE_LIMITS = [1e5, 1e6, 1e7, 1e8, 1e9, 10e9];

/** By which id of the event that made them, or by what of their own, blocks are grouped. */
export const GROUPINGS = [
  ["stack", "source line"],
  ["function", "function"],
  ["call", "innermost call"],
  ["module", "module"],
  ["phase", "training phase"],
  ["category", "category"],
  ["stream", "stream"],
  ["pool", "pool"],
  ["framework", "library"],
  ["size", "size class"],
  ["age", "lifetime"],
] as const;
export type GroupedBy = (typeof GROUPINGS)[number][0];

/** The blocks of a timeline, in groups that have the same id or the same step. */
export class BlockGroups {
  readonly timeline: DeviceTimeline;
  readonly #by: GroupedBy;
  readonly #groupOfId = new NumberMap();
  readonly #ids: number[] = [];
  readonly #ofBlock = new GrowingWholes();
  readonly #totalBytes = new GrowingFloats(16);
  #peak = -1;
  #bytesAtPeak = new Float64Array();

  constructor(timeline: DeviceTimeline, by: GroupedBy) {
    this.timeline = timeline;
    this.#by = by;
  }

  /** Takes in the blocks that were added since the last call. */
  extend(): void {
    const { blocks } = this.timeline;
    for (let block = this.#ofBlock.length; block < blocks.count; block += 1) {
      const group = this.#groupOf(this.#idOf(block));
      this.#ofBlock.push(group);
      this.#totalBytes.set(group, this.#totalBytes.at(group) + (blocks.size[block] ?? 0));
    }
  }

  /** The id of each group. */
  get ids(): readonly number[] {
    return this.#ids;
  }

  /** The group of an id, or NOTHING. */
  groupOfId(id: number): number {
    return this.#groupOfId.get(id);
  }

  groupOf(block: number): number {
    return this.#ofBlock.at(block);
  }

  /** The group of each block. */
  get ofBlock(): Wholes {
    return this.#ofBlock.view();
  }

  /** The bytes of all blocks of a group together. */
  totalBytes(group: number): number {
    return this.#totalBytes.at(group);
  }

  /** For each group the bytes allocated in its blocks when most was allocated. */
  bytesAtPeak(): Float64Array<ArrayBuffer> {
    const { blocks, events, peak } = this.timeline;
    if (this.#peak !== peak) {
      this.#peak = peak;
      this.#bytesAtPeak = new Float64Array(this.#ids.length);
      for (const block of activeAfter(blocks, events, peak)) {
        const isKnown = blocks.allocated[block] !== NO_EVENT;
        if (isKnown && isAllocatedAfter(blocks, block, peak)) {
          const group = this.#ofBlock.at(block);
          this.#bytesAtPeak[group] = (this.#bytesAtPeak[group] ?? 0) + (blocks.size[block] ?? 0);
        }
      }
    }
    return this.#bytesAtPeak;
  }

  #idOf(block: number): number {
    const { blocks, events } = this.timeline;
    const by = this.#by;
    if (by === "size") {
      return countBelow(SIZE_LIMITS, blocks.size[block] ?? 0);
    }
    if (by === "age") {
      const { fromNs, toNs } = this.timeline.lifeOf(block);
      return countBelow(AGE_LIMITS, toNs - fromNs);
    }
    if (by === "category") {
      return originOf(blocks, block);
    }
    const isOfEvent = by === "stream" || by === "pool" || by === "framework";
    return events[isOfEvent ? by : "stack"][originOf(blocks, block)] ?? 0;
  }

  #groupOf(id: number): number {
    const known = this.#groupOfId.get(id);
    if (known !== NOTHING) {
      return known;
    }
    const group = this.#ids.length;
    this.#groupOfId.set(id, group);
    this.#ids.push(id);
    this.#totalBytes.push(0);
    return group;
  }
}
