import { NumberMap } from "../base/number_map.ts";
import { Action, ActivityKind, type CATEGORIES } from "../wire/codes.ts";
import { endOfAllocation, NO_EVENT } from "./blocks.ts";
import type { DeviceContents } from "./device_contents.ts";
import { covered, stackOfLaunch } from "./gpu_rows.ts";
import { isIn, lengthIn, type Window } from "./grouping.ts";

const ACTIVATION: (typeof CATEGORIES)[number] = "activation";

/** As in `Recording.lines()`, the activations at the peak, and the bytes at the end. */
export const SUM_NAMES = [
  "liveBytes",
  "activationBytes",
  "endBytes",
  "totalBytes",
  "totalCount",
  "kernelNs",
  "kernelCount",
  "copyNs",
  "copyBytes",
  "waitNs",
  "idleNs",
] as const;

/** What a call stack did in a window; bytes are those of blocks, as rounded. */
export type Sums = Record<(typeof SUM_NAMES)[number], number>;

export interface StackSums {
  readonly stack: number;
  readonly sums: Sums;
  /** The largest block, at the peak if there is one then; undefined without blocks. */
  readonly largest: number | undefined;
}

const NONE = -1;

/** Columns of sums, with a place for each call stack. */
class Columns {
  readonly stacks: number[] = [];
  of = {} as Record<keyof Sums | "largest", Float64Array<ArrayBuffer>>;
  readonly #places = new NumberMap();
  #room = 0;

  constructor() {
    this.#grow(256);
  }

  placeOf(stack: number): number {
    const known = this.#places.get(stack);
    if (known >= 0) {
      return known;
    }
    const place = this.stacks.length;
    if (place === this.#room) {
      this.#grow(2 * place);
    }
    this.#places.set(stack, place);
    this.stacks.push(stack);
    return place;
  }

  #grow(room: number): void {
    for (const name of [...SUM_NAMES, "largest"] as const) {
      const longer = new Float64Array(room).fill(name === "largest" ? NONE : 0);
      longer.set(this.of[name] ?? []);
      this.of[name] = longer;
    }
    this.#room = room;
  }
}

/**
 * What each call stack did, most bytes at the peak first.
 *
 * Of a window, as of `Recording.window`: peak and end are its own, and what was there before it is
 * not allocated in it.
 */
export function stackSums(contents: DeviceContents, window: Window): StackSums[] {
  const columns = new Columns();
  addMemory(columns, contents, window);
  addActivities(columns, contents, window);
  addIdleTime(columns, contents, window);
  addWaits(columns, contents, window);
  const { stacks, of } = columns;
  const sums = stacks.map((stack, place) => {
    const largest = of.largest[place] ?? NONE;
    const values = SUM_NAMES.map((name) => [name, of[name][place] ?? 0] as const);
    return {
      stack,
      sums: Object.fromEntries(values) as unknown as Sums,
      largest: largest < 0 ? undefined : largest,
    };
  });
  return sums.sort((left, right) => right.sums.liveBytes - left.sums.liveBytes);
}

function add(column: Float64Array, place: number, value = 0): void {
  column[place] = (column[place] ?? 0) + value;
}

function addMemory(
  columns: Columns,
  { device, gpu, timeline }: DeviceContents,
  window: Window,
): void {
  const categoryOf = gpu.blockCategories.of(device);
  const { blocks, events } = timeline;
  const [first, end] = window === undefined ? [0, events.count] : timeline.rowsIn(window);
  const peak = window === undefined ? timeline.peak : timeline.peakIn(first, end);
  const { allocated, size } = blocks;
  const { action, stack } = events;
  const firstNew = Math.max(first, events.initialCount);
  for (let block = 0; block < blocks.count; block += 1) {
    const row = allocated[block] ?? NO_EVENT;
    if (row === NO_EVENT || row >= end) {
      continue;
    }
    const until = endOfAllocation(blocks, block);
    const isNew = row >= firstNew && action[row] === Action.alloc;
    const isAtPeak = row <= peak && peak < until;
    const isAtEnd = end - 1 < until;
    if (!isNew && !isAtPeak && !isAtEnd) {
      continue;
    }
    const place = columns.placeOf(stack[row] ?? 0);
    const { of } = columns;
    const bytes = size[block] ?? 0;
    const largest = of.largest[place] ?? NONE;
    const hasLive = (of.liveBytes[place] ?? 0) > 0;
    const isLarger = largest < 0 || bytes > (size[largest] ?? 0);
    if (isAtPeak ? !hasLive || isLarger : !hasLive && isLarger) {
      of.largest[place] = block;
    }
    add(of.liveBytes, place, isAtPeak ? bytes : 0);
    if (isAtPeak && categoryOf.get(row) === ACTIVATION) {
      add(of.activationBytes, place, bytes);
    }
    add(of.endBytes, place, isAtEnd ? bytes : 0);
    add(of.totalBytes, place, isNew ? bytes : 0);
    add(of.totalCount, place, Number(isNew));
  }
}

function addActivities(columns: Columns, { gpu, device }: DeviceContents, window: Window): void {
  const { activities } = gpu;
  const { kind, device: deviceOf, bytes } = activities;
  const inside = covered(gpu, window);
  const stackOf = stackOfLaunch(gpu);
  for (let row = 0; row < activities.count; row += 1) {
    const isCopy = kind[row] === ActivityKind.memcpy;
    const isWork = kind[row] === ActivityKind.kernel || kind[row] === ActivityKind.graph;
    if (deviceOf[row] !== device || !(isCopy || isWork) || !isIn(inside, activities, row)) {
      continue;
    }
    const place = columns.placeOf(stackOf(row));
    const { of } = columns;
    const lengthNs = lengthIn(inside, activities, row);
    if (isWork) {
      add(of.kernelNs, place, lengthNs);
      add(of.kernelCount, place, 1);
    } else {
      add(of.copyNs, place, lengthNs);
      add(of.copyBytes, place, bytes[row]);
    }
  }
}

/** Idle time belongs to the line that kept the host, where that is known, else to what ended it. */
function addIdleTime(columns: Columns, { gpu, device }: DeviceContents, window: Window): void {
  const { activities } = gpu;
  const inside = covered(gpu, window);
  const stackOf = stackOfLaunch(gpu);
  const addIdle = (fromNs: number, toNs: number, activity: number): void => {
    if (inside === undefined || (toNs > inside.fromNs && toNs <= inside.toNs)) {
      const place = columns.placeOf(stackOf(activity));
      add(columns.of.idleNs, place, toNs - Math.max(fromNs, inside?.fromNs ?? 0));
    }
  };
  const gaps = gpu.idleGaps.of(device, 0)?.gaps;
  if (gaps !== undefined) {
    const { fromNs, toNs, source, count } = gaps;
    for (let gap = 0; gap < count; gap += 1) {
      if ((source[gap] ?? NONE) >= 0) {
        addIdle(fromNs[gap] ?? 0, toNs[gap] ?? 0, source[gap] ?? 0);
      }
    }
  }
  for (const { device: of, fromNs, toNs, activity, stack } of gpu.hostWork.pieces) {
    const endNs = activities.fromNs[activity] ?? 0;
    const counts = inside === undefined || (endNs > inside.fromNs && endNs <= inside.toNs);
    if (stack > 0 && of === device && counts) {
      const lengthNs = Math.max(toNs - Math.max(fromNs, inside?.fromNs ?? 0), 0);
      const places = [columns.placeOf(stackOf(activity)), columns.placeOf(stack)] as const;
      const { idleNs } = columns.of;
      add(idleNs, places[0], -lengthNs);
      add(idleNs, places[1], lengthNs);
    }
  }
  // The gaps of a whole recording begin with its first activity, those of a window with it.
  const first = firstOf(gpu.activities, device);
  if (window !== undefined && gpu.bounds === undefined && first >= 0) {
    addIdle(window.fromNs, activities.fromNs[first] ?? 0, first);
  }
}

/** The earliest activity of a device; -1 if there is none. */
function firstOf(
  { count, fromNs, kind, device: deviceOf }: DeviceContents["gpu"]["activities"],
  device: number,
): number {
  let first = NONE;
  let firstNs = Infinity;
  for (let row = 0; row < count; row += 1) {
    const isEarlier = (fromNs[row] ?? 0) < firstNs;
    if (isEarlier && deviceOf[row] === device && kind[row] !== ActivityKind.range) {
      first = row;
      firstNs = fromNs[row] ?? 0;
    }
  }
  return first;
}

function addWaits(columns: Columns, { gpu, device }: DeviceContents, window: Window): void {
  const { hostWaits } = gpu;
  const inside = covered(gpu, window);
  for (let row = 0; row < hostWaits.count; row += 1) {
    const waited = hostWaits.device[row] ?? NONE;
    if ((waited === device || waited < 0) && isIn(inside, hostWaits, row)) {
      const place = columns.placeOf(hostWaits.stack[row] ?? 0);
      add(columns.of.waitNs, place, lengthIn(inside, hostWaits, row));
    }
  }
}
