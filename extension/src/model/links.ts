import { ACCESS_MODES, type RANGE_KINDS } from "../wire/codes.ts";
import { NO_EVENT } from "./blocks.ts";
import type { DeviceContents } from "./device_contents.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import { NOTHING_HIGHLIGHTED, type Highlighted, type Selected } from "./selected.ts";
import { OPEN } from "./ranges.ts";
import { isActivity, tableOfSpan, SpanKind } from "./span_kinds.ts";
import type { GpuActivities } from "./gpu_activities.ts";
import type { Stacks } from "./stacks.ts";

const BACKWARD: (typeof RANGE_KINDS)[number] = "backward";

/** A block or an activity at the other end of a link, and how the one uses the other. */
export interface Link {
  readonly row: number;
  readonly access: string;
}

/** Which launches touched which blocks, by the pointers that they were launched with. */
export class Links {
  readonly #timeline: DeviceTimeline;
  readonly #gpu: GpuActivities;
  readonly #stacks: Stacks;
  readonly #device: number;

  constructor({
    timeline,
    gpu,
    stacks,
    device,
  }: Pick<DeviceContents, "timeline" | "gpu" | "stacks" | "device">) {
    this.#timeline = timeline;
    this.#gpu = gpu;
    this.#stacks = stacks;
    this.#device = device;
  }

  /** The blocks that the launch of an activity got pointers into. */
  blocksOf(activity: number): Link[] {
    const { activities, launchBlocks } = this.#gpu;
    const correlation = activities.correlation[activity] ?? 0;
    const links = new Map<number, Set<string>>();
    for (const row of launchBlocks.byCorrelation.all(correlation)) {
      const block = this.#blockOf(row);
      if (block !== NO_EVENT) {
        addAccess(links, block, launchBlocks.mode[row] ?? 0);
      }
    }
    return linksOf(links);
  }

  /** The activities whose launches got pointers into a block while it lived, in their order. */
  launchesOf(block: number): Link[] {
    const { activities, launchBlocks } = this.#gpu;
    const { correlation, mode } = launchBlocks;
    const links = new Map<number, Set<string>>();
    for (let row = 0; row < launchBlocks.count; row += 1) {
      const isSame = this.#blockOf(row) === block;
      for (const activity of isSame ? activities.byCorrelation.all(correlation[row] ?? 0) : []) {
        addAccess(links, activity, mode[row] ?? 0);
      }
    }
    const { fromNs } = activities;
    return linksOf(links).sort((left, right) => (fromNs[left.row] ?? 0) - (fromNs[right.row] ?? 0));
  }

  /**
   * The activities that were launched in a range on its thread, or by a CUDA call; of a backward
   * pass, by the threads of the process that do its work.
   */
  launchedBy(spanKind: number, row: number): number[] {
    const { activities, apiCalls, processes, ranges } = this.#gpu;
    if (spanKind === SpanKind.call) {
      return activities.byCorrelation.all(apiCalls.correlation[row] ?? 0);
    }
    const begin = ranges.fromNs[row] ?? 0;
    const end = ranges.toNs[row] ?? OPEN;
    const { fromNs, thread, correlation, stack } = apiCalls;
    const isOwn = (call: number): boolean =>
      spanKind === SpanKind.backward
        ? this.#stacks.phaseOf(stack[call] ?? 0) === BACKWARD &&
          processes.isThreadOf(thread[call] ?? 0, this.#device)
        : thread[call] === ranges.thread[row];
    const launched: number[] = [];
    for (let call = 0; call < apiCalls.count; call += 1) {
      const at = fromNs[call] ?? 0;
      const isInside = at >= begin && (end === OPEN || at < end);
      if (isInside && isOwn(call)) {
        launched.push(...activities.byCorrelation.all(correlation[call] ?? 0));
      }
    }
    return launched;
  }

  /** What lights up when something is selected. */
  highlightedBy(selected: Selected | undefined): Highlighted {
    if (selected === undefined) {
      return NOTHING_HIGHLIGHTED;
    }
    const found = (blocks: readonly number[], activities: readonly number[]): Highlighted => ({
      blocks: new Set(blocks),
      activities: new Set(activities),
      spans: [selected],
    });
    if (selected.kind === "gap") {
      return found([], [selected.gap.next]);
    }
    if (selected.kind === "block") {
      return found(
        [selected.block],
        this.launchesOf(selected.block).map((link) => link.row),
      );
    }
    const { spanKind, row } = selected;
    if (isActivity(spanKind)) {
      return found(
        this.blocksOf(row).map((link) => link.row),
        [row],
      );
    }
    const isCaller = tableOfSpan(spanKind) === "ranges" || spanKind === SpanKind.call;
    return found([], isCaller ? this.launchedBy(spanKind, row) : []);
  }

  /** The block of a row of `LaunchBlocks`, or NO_EVENT. */
  #blockOf(row: number): number {
    const { accessedBlocks } = this.#gpu;
    const isHere = accessedBlocks.device[row] === this.#device;
    return isHere ? this.#timeline.blocks.blockOf(accessedBlocks.event[row] ?? NO_EVENT) : NO_EVENT;
  }
}

function addAccess(links: Map<number, Set<string>>, row: number, mode: number): void {
  const modes = links.get(row) ?? new Set();
  modes.add(ACCESS_MODES[mode] ?? "unknown");
  links.set(row, modes);
}

function linksOf(links: ReadonlyMap<number, ReadonlySet<string>>): Link[] {
  return [...links].map(([row, modes]) => {
    const known = [...modes].flatMap((mode) => (mode === "unknown" ? [] : mode.split("_")));
    return { row, access: [...new Set(known)].sort().join(" and ") || "unknown" };
  });
}
