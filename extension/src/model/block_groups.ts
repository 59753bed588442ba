import { GrowingFloats, GrowingIds } from "../base/growing.ts";
import { NOTHING, NumberMap } from "../base/number_map.ts";
import { activeAfter, originOf } from "./blocks.ts";
import type { DeviceTimeline } from "./device_timeline.ts";

/** By which id of the event that made them blocks are grouped. */
export type GroupedBy = "stack" | "stream";

/** The blocks of a timeline, in groups whose events have the same id. */
export class BlockGroups {
  readonly #timeline: DeviceTimeline;
  readonly #by: GroupedBy;
  readonly #groupOfId = new NumberMap();
  readonly #ids: number[] = [];
  readonly #ofBlock = new GrowingIds();
  readonly #totalBytes = new GrowingFloats(16);
  #peak = -1;
  #bytesAtPeak = new Float64Array();

  constructor(timeline: DeviceTimeline, by: GroupedBy) {
    this.#timeline = timeline;
    this.#by = by;
  }

  /** Takes in the blocks that were added since the last call. */
  extend(): void {
    const { blocks, events } = this.#timeline;
    const ids = events[this.#by];
    for (let block = this.#ofBlock.length; block < blocks.count; block += 1) {
      const group = this.#groupOf(ids[originOf(blocks, block)] ?? 0);
      this.#ofBlock.push(group);
      this.#totalBytes.set(group, this.#totalBytes.at(group) + (blocks.size[block] ?? 0));
    }
  }

  /** The id of each group. */
  get ids(): readonly number[] {
    return this.#ids;
  }

  /** The group of each block. */
  get ofBlock(): Uint32Array<ArrayBuffer> {
    return this.#ofBlock.view();
  }

  /** The bytes of all blocks of a group together. */
  totalBytes(group: number): number {
    return this.#totalBytes.at(group);
  }

  /** For each group the bytes of its blocks that existed when most was allocated. */
  bytesAtPeak(): Float64Array<ArrayBuffer> {
    const { blocks, events, peak } = this.#timeline;
    if (this.#peak !== peak) {
      this.#peak = peak;
      this.#bytesAtPeak = new Float64Array(this.#ids.length);
      for (const block of activeAfter(blocks, events, peak)) {
        const group = this.#ofBlock.at(block);
        this.#bytesAtPeak[group] = (this.#bytesAtPeak[group] ?? 0) + (blocks.size[block] ?? 0);
      }
    }
    return this.#bytesAtPeak;
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
