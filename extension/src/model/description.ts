import { formatAddress, formatBytes, formatDuration, formatExactBytes } from "../base/format.ts";
import { NO_EVENT, originOf } from "./blocks.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import { nameFramework } from "./events.ts";
import type { Names } from "./names.ts";
import { describeFrame, describeLine, type Stacks } from "./stacks.ts";

const FRAMES_SHOWN = 5;

/** Turns blocks and segments into lines of text for a reader. */
export class Descriptions {
  readonly #timeline: DeviceTimeline;
  readonly #stacks: Stacks;
  readonly #names: Names;

  constructor(timeline: DeviceTimeline, stacks: Stacks, names: Names) {
    this.#timeline = timeline;
    this.#stacks = stacks;
    this.#names = names;
  }

  block(block: number): string[] {
    const { blocks, events } = this.#timeline;
    const allocated = blocks.allocated[block] ?? NO_EVENT;
    const requested = events.requestedSize[originOf(blocks, block)] ?? 0;
    return [
      `Block of ${formatExactBytes(blocks.size[block] ?? 0)}`,
      `requested: ${formatExactBytes(requested)}${this.#rounding(block, requested)}`,
      ...this.#segmentOf(block),
      ...this.#place(originOf(blocks, block), blocks.address[block] ?? 0),
      ...this.#lifetime(block),
      ...(allocated === NO_EVENT
        ? ["allocated: before the recording"]
        : this.#stack("allocated", allocated)),
      ...this.#freeLines(block),
    ];
  }

  segment(origin: number, from: number, to: number): string[] {
    return [
      `Segment of ${formatExactBytes(to - from)}, unused here`,
      ...this.#place(origin, from),
      ...this.#stack("reserved", origin),
    ];
  }

  /** Free space; a segment that is free as a whole can be given back to the device. */
  gap(origin: number, from: number, bytes: number, isWhole: boolean): string[] {
    return [
      `${isWhole ? "Free (cached) segment" : "Free (split-off) space"} of ${formatExactBytes(bytes)}`,
      isWhole ? "empty_cache releases it" : "kept while its segment has live blocks",
      ...this.#place(origin, from),
      ...this.#stack("segment reserved", origin),
    ];
  }

  #rounding(block: number, requested: number): string {
    const more = (this.#timeline.blocks.size[block] ?? 0) - requested;
    return more > 0 ? `, rounded up by ${formatBytes(more)}` : "";
  }

  /** The segment that the block was cut from. */
  #segmentOf(block: number): string[] {
    const { blocks, segments } = this.#timeline;
    const address = blocks.address[block] ?? 0;
    const born = originOf(blocks, block);
    for (let index = 0; index < segments.count; index += 1) {
      const [from = 0, to = 0, end = NO_EVENT] = [
        segments.from[index],
        segments.to[index],
        segments.ended[index],
      ];
      const isHome = from <= address && address < to && (segments.begun[index] ?? 0) <= born;
      if (isHome && (end === NO_EVENT || end > born)) {
        return [`segment: ${formatExactBytes(to - from)} at ${formatAddress(from)}`];
      }
    }
    return [];
  }

  #place(row: number, address: number): string[] {
    const { events } = this.#timeline;
    return [
      `address: ${formatAddress(address)}`,
      `stream: ${this.#names.stream(events.stream[row] ?? 0)}`,
      `pool: ${this.#names.pool(events.pool[row] ?? 0)}`,
      ...(events.isShared ? [`library: ${nameFramework(events.framework[row] ?? 0)}`] : []),
    ];
  }

  #lifetime(block: number): string[] {
    const { fromNs, toNs } = this.#timeline.lifeOf(block);
    const { address, freeCompleted } = this.#timeline.blocks;
    if (freeCompleted[block] !== NO_EVENT) {
      return [`lived: ${formatDuration(toNs - fromNs)}`];
    }
    const holder = this.#names.holders.get(address[block] ?? 0);
    return [
      `lived: ${formatDuration(toNs - fromNs)} until the end, not freed`,
      ...(holder === undefined ? [] : [`held by: ${holder}`]),
    ];
  }

  #freeLines(block: number): string[] {
    const { blocks, events } = this.#timeline;
    const request = blocks.freeRequested[block] ?? NO_EVENT;
    const completed = blocks.freeCompleted[block] ?? NO_EVENT;
    if (request === NO_EVENT) {
      return [];
    }
    const waited = (events.timeNs[completed] ?? 0) - (events.timeNs[request] ?? 0);
    const pending =
      completed === NO_EVENT
        ? ["free pending until the end: a stream may still use it"]
        : completed === request + 1
          ? []
          : [`free pending for ${formatDuration(waited)}: a stream could still use it`];
    return [...this.#stack("freed", request), ...pending];
  }

  #stack(verb: string, row: number): string[] {
    const { events, endNs } = this.#timeline;
    const stack = events.stack[row] ?? 0;
    const time = formatDuration(Math.min(events.timeNs[row] ?? 0, endNs));
    const own = this.#stacks.userFrameOf(stack);
    if (own === undefined) {
      return [`${verb} at ${time}, no call stack`];
    }
    const frames = this.#stacks.framesOf(stack);
    const shown = frames.slice(0, FRAMES_SHOWN).map((frame) => `  ← ${describeFrame(frame)}`);
    const rest = frames.length - shown.length;
    const more = rest > 0 ? [`  ← ${rest} more`] : [];
    const line = describeLine(`${verb} at ${time}`, own);
    const place = this.#stacks.placeLinesOf(stack);
    return frames.length === 1 ? [...line, ...place] : [...line, ...place, ...shown, ...more];
  }
}
