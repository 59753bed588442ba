import { ActivityKind, COPY_KINDS, HOST_WAIT_KINDS } from "../wire/codes.ts";
import type { DeviceContents } from "./device_contents.ts";
import { Counts, Groups, joined, lengthIn, numbersOf, type Group, type KeyOf } from "./grouping.ts";
import type { LaunchConfiguration } from "./launch_configurations.ts";
import { OPEN } from "./ranges.ts";
import type { Selected } from "./selected.ts";
import { SpanKind, spanKindOf } from "./span_kinds.ts";
import type { CallSite } from "./stacks.ts";
import type { GpuActivities } from "./gpu_activities.ts";

/** The columns that all these tables have. */
export interface GpuRow extends Omit<Group, "longest"> {
  readonly callSite: CallSite;
  /** Every line behind it, the most frequent first. */
  readonly callSites: readonly CallSite[];
  readonly longest: Selected;
  /** Whether it has only what one line launched of another row. */
  readonly isPart: boolean;
}

/** A row as in `Recording.kernels()`. */
export interface KernelRow extends GpuRow {
  readonly name: string;
  /** The name that it is shown by. */
  readonly short: string;
  readonly share: number;
  /** The summed time of all kernels, which the share is of. */
  readonly ofNs: number;
  readonly launchDelayNs: number | undefined;
  /** The most frequent launch configuration. */
  readonly launch: LaunchConfiguration | undefined;
}

/** A row as in `Recording.copies()`. */
export interface CopyRow extends GpuRow {
  readonly copyKind: string;
  readonly hostMemory: string;
  readonly bytes: number;
  readonly bytesPerSecond: number | undefined;
}

/** A row as in `Recording.synchronizations("line")`. */
export interface SynchronizationRow extends GpuRow {
  readonly kind: string;
  readonly name: string;
  /** Undefined if it is unknown for all of them. */
  readonly waitingNs: number | undefined;
  readonly transferNs: number | undefined;
}

/** Returns the rows of a table, computed from everything received so far. */
export type RowsUntilNow<Row> = () => readonly Row[];

/** A range in ns; undefined for all of the recording, which may be a window itself. */
export type Window = GpuActivities["bounds"];

/** The part of a window that the recording covers. */
export function covered({ bounds }: GpuActivities, window: Window): Window {
  return window === undefined || bounds === undefined
    ? (window ?? bounds)
    : {
        fromNs: Math.max(window.fromNs, bounds.fromNs),
        toNs: Math.min(window.toNs, bounds.toNs),
      };
}

/** The kernels of a device by name, or of one row by line, most time first. */
export function kernelRows(
  contents: DeviceContents,
  window: Window,
  of?: KernelRow,
): RowsUntilNow<KernelRow> {
  const { gpu, stacks } = contents;
  const { activities, apiCalls, strings } = gpu;
  const numbers = numbersOf((id) => strings.get(id));
  const stackOf = stackOfLaunch(gpu);
  const nameOf: KeyOf = (row) => numbers(activities.name[row] ?? 0);
  const groups = new Groups(
    activities,
    of === undefined ? nameOf : lineOfLaunch(contents),
    joined(stackOf, (row) => activities.launch[row] ?? 0),
    () => ({ delaysNs: new Counts() }),
    covered(gpu, window),
  );
  const take = takeLaunched(
    contents,
    (row) =>
      activities.kind[row] === ActivityKind.kernel &&
      (of === undefined || nameOf(row) === nameOf(of.typical)),
    window,
    groups,
    ({ delaysNs }, row, call) => {
      if (call >= 0) {
        delaysNs.add(Math.max((activities.fromNs[row] ?? 0) - (apiCalls.toNs[call] ?? 0), 0));
      }
    },
  );
  return () => {
    take();
    const all = groups.all();
    const ofNs = of?.ofNs ?? all.reduce((sum, { totalNs }) => sum + totalNs, 0);
    const kernels = all.map(({ delaysNs, ...group }) => ({
      ...group,
      name: strings.get(activities.name[group.typical] ?? 0),
      short: gpu.kernelName(activities.name[group.typical] ?? 0),
      ...callSitesOf(group, (row) => stacks.callSiteOf(stackOf(row))),
      share: group.totalNs / Math.max(ofNs, 1),
      ofNs,
      isPart: of !== undefined,
      launchDelayNs: delaysNs.median,
      launch: gpu.configurations.get(activities.launch[group.typical] ?? 0),
      longest: activity(gpu, group.longest),
    }));
    return kernels.sort(
      (left, right) =>
        right.totalNs - left.totalNs ||
        right.count - left.count ||
        (left.name < right.name ? -1 : left.name > right.name ? 1 : 0),
    );
  };
}

/** The copies of a device by kind and kind of host memory, or of one row by line. */
export function copyRows(
  contents: DeviceContents,
  window: Window,
  of?: CopyRow,
): RowsUntilNow<CopyRow> {
  const { gpu, stacks } = contents;
  const { activities } = gpu;
  const stackOf = stackOfLaunch(gpu);
  const kindOf = joined(
    (row) => activities.copyKind[row] ?? 0,
    (row) => activities.hostMemory[row] ?? 0,
  );
  const keyOf = of === undefined ? kindOf : lineOfLaunch(contents);
  const more = (): { bytes: number; wholeNs: number } => ({ bytes: 0, wholeNs: 0 });
  const groups = new Groups(activities, keyOf, stackOf, more, covered(gpu, window));
  const take = takeLaunched(
    contents,
    (row) =>
      activities.kind[row] === ActivityKind.memcpy &&
      (of === undefined || kindOf(row) === kindOf(of.typical)),
    window,
    groups,
    (sums, row, _, isNew) => {
      sums.bytes += isNew ? (activities.bytes[row] ?? 0) : 0;
      sums.wholeNs += isNew ? lengthIn(undefined, activities, row) : 0;
    },
  );
  return () => {
    take();
    return groups.all().map(({ wholeNs, ...group }) => ({
      ...group,
      isPart: of !== undefined,
      copyKind: COPY_KINDS[activities.copyKind[group.typical] ?? 0] ?? "",
      hostMemory: activities.hostMemoryOf(group.typical),
      ...callSitesOf(group, (row) => stacks.callSiteOf(stackOf(row))),
      bytesPerSecond: wholeNs === 0 ? undefined : (group.bytes * 1e9) / wholeNs,
      longest: activity(gpu, group.longest),
    }));
  };
}

/** What blocked the host, by line, most time first. */
export function synchronizationRows(
  { gpu, stacks }: DeviceContents,
  window: Window,
): RowsUntilNow<SynchronizationRow> {
  const { hostWaits, strings } = gpu;
  const lines = numbersOf((id) => stacks.callSiteOf(id).site);
  const names = numbersOf((id) => strings.get(id));
  const stackOf: KeyOf = (row) => hostWaits.stack[row] ?? 0;
  const keyOf = joined(
    (row) => lines(stackOf(row)),
    (row) => hostWaits.kind[row] ?? 0,
    (row) => names(hostWaits.name[row] ?? 0),
  );
  // Later batches replace rows of waits, so they are grouped anew each time.
  return () => {
    const more = { waiting: 0, transfer: 0, known: 0 };
    const inside = covered(gpu, window);
    const groups = new Groups(hostWaits, keyOf, stackOf, () => ({ ...more }), inside);
    for (let row = 0; row < hostWaits.count; row += 1) {
      if (isIn(inside, hostWaits, row)) {
        const sums = groups.add(row);
        const waitingNs = hostWaits.waitingNs[row] ?? NaN;
        if (!Number.isNaN(waitingNs)) {
          const fromNs = [hostWaits.fromNs[row] ?? 0];
          const began = [(fromNs[0] ?? 0) + waitingNs];
          sums.waiting += lengthIn(inside, { fromNs, toNs: began }, 0);
          sums.transfer += lengthIn(inside, { fromNs: began, toNs: [hostWaits.toNs[row] ?? 0] }, 0);
          sums.known += 1;
        }
      }
    }
    return groups.all().map(({ waiting, transfer, known, ...group }) => ({
      ...group,
      isPart: false,
      kind: HOST_WAIT_KINDS[hostWaits.kind[group.typical] ?? 0] ?? "",
      name: strings.get(hostWaits.name[group.typical] ?? 0),
      ...callSitesOf(group, (row) => stacks.callSiteOf(stackOf(row))),
      waitingNs: known === 0 ? undefined : waiting,
      transferNs: known === 0 ? undefined : transfer,
      longest: wait(gpu, group.longest),
    }));
  };
}

/**
 * Returns a function that groups new activities; their calls may arrive after them.
 *
 * `sum` updates the caller's totals for each activity, and again if its call arrives later.
 */
function takeLaunched<More>(
  { gpu, device }: DeviceContents,
  isWanted: (row: number) => boolean,
  window: Window,
  groups: Groups<More>,
  sum: (more: More, row: number, call: number, isNew: boolean) => void,
): () => void {
  const { activities, apiCalls } = gpu;
  let taken = 0;
  let calls = 0;
  // Row and kind alternate: objects for millions of rows would need too much memory.
  let withoutCall: number[] = [];
  const takeLate = (): void => {
    const waiting = withoutCall;
    withoutCall = [];
    for (let at = 0; at < waiting.length; at += 2) {
      const [row = 0, kind = 0] = [waiting[at], waiting[at + 1]];
      const call = callOf(gpu, row);
      if (call < 0) {
        withoutCall.push(row, kind);
      } else {
        sum(groups.changeKind(row, kind), row, call, false);
      }
    }
  };
  return () => {
    if (apiCalls.count > calls) {
      takeLate();
      calls = apiCalls.count;
    }
    const inside = covered(gpu, window);
    for (; taken < activities.count; taken += 1) {
      const isHere = activities.device[taken] === device && isWanted(taken);
      if (isHere && isIn(inside, activities, taken)) {
        const call = callOf(gpu, taken);
        sum(groups.add(taken), taken, call, true);
        if (call < 0) {
          withoutCall.push(taken, groups.kindOf(taken));
        }
      }
    }
  };
}

function callSitesOf(
  { typical, variants }: Group,
  siteOf: (row: number) => CallSite,
): Pick<GpuRow, "callSite" | "callSites"> {
  const sites = new Map<string, { callSite: CallSite; count: number; first: number }>();
  for (const { count, first } of variants) {
    const callSite = siteOf(first);
    const known = sites.get(callSite.site) ?? { callSite, count: 0, first };
    known.count += count;
    known.first = Math.min(known.first, first);
    sites.set(callSite.site, known);
  }
  const callSites = [...sites.values()]
    .sort((left, right) => right.count - left.count || left.first - right.first)
    .map(({ callSite }) => callSite);
  return { callSite: siteOf(typical), callSites };
}

/** Rows without times are in every window. */
export function isIn(
  window: Window,
  { fromNs, toNs }: Pick<GpuActivities["hostWaits"], "fromNs" | "toNs">,
  row: number,
): boolean {
  const [from, to] = [fromNs[row] ?? 0, toNs[row] ?? 0];
  return (
    window === undefined ||
    (from <= window.toNs && (to > window.fromNs || to === OPEN)) ||
    (from === 0 && to === 0)
  );
}

/** The call stack of the call that launched an activity; 0 while unknown. */
export function stackOfLaunch(gpu: GpuActivities): KeyOf {
  return (row) => gpu.apiCalls.stackOf(gpu.activities.correlation[row]);
}

/** A number for the line that launched an activity; wrong once its call arrives later. */
function lineOfLaunch({ gpu, stacks }: DeviceContents): KeyOf {
  const stackOf = stackOfLaunch(gpu);
  const lines = numbersOf((stack) => stacks.callSiteOf(stack).site);
  return (row) => lines(stackOf(row));
}

/** The row of `ApiCalls` that launched an activity; -1 if unknown. */
function callOf({ activities, apiCalls }: GpuActivities, row: number): number {
  return apiCalls.of(activities.correlation[row]);
}

function activity({ activities }: GpuActivities, row: number): Selected {
  return { kind: "span", spanKind: spanKindOf(activities)(row), row };
}

function wait({ hostWaits }: GpuActivities, row: number): Selected {
  return hostWaits.isOfCopy(row)
    ? { kind: "span", spanKind: SpanKind.call, row: hostWaits.call[row] ?? 0 }
    : { kind: "span", spanKind: SpanKind.wait, row };
}
