import { ActivityKind, COPY_KINDS } from "../wire/codes.ts";
import type { DeviceContents } from "./device_contents.ts";
import {
  groupRows,
  joined,
  label,
  lengthIn,
  medianOf,
  numbersOf,
  type Group,
  type KeyOf,
  type Labels,
  type Window,
} from "./grouping.ts";
import type { LaunchConfiguration } from "./launch_configurations.ts";
import type { Selected } from "./selected.ts";
import { SpanKind, spanKindOf } from "./span_kinds.ts";
import type { CallSite } from "./stacks.ts";
import type { GpuActivities } from "./gpu_activities.ts";

/** Of a row that is in no group. */
const NO_KEY = -1;

/** The columns that all these tables have. */
export interface GpuRow extends Omit<Group, "longest" | "rows" | "values"> {
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
  /** What the host waited for, in words. */
  readonly waitedFor: string;
  readonly name: string;
  /** Undefined if it is unknown for all of them. */
  readonly waitingNs: number | undefined;
  readonly transferNs: number | undefined;
}

/** The part of a window that the recording covers. */
export function covered({ bounds }: GpuActivities, window: Window): Window {
  return window === undefined || bounds === undefined
    ? (window ?? bounds)
    : {
        fromNs: Math.max(window.fromNs, bounds.fromNs),
        toNs: Math.min(window.toNs, bounds.toNs),
      };
}

/** Labels of more rows would be a noticeable part of a page's memory. */
const MOST_REMEMBERED = 2_000_000;
const LABELS = new WeakMap<GpuActivities, Record<string, Labels & { stamp: string }>>();

/** The labels of the rows of a table, which hold for any window until more rows come. */
function remembered(gpu: GpuActivities, name: string, make: () => Labels): Labels {
  const { activities, apiCalls, strings } = gpu;
  const known = LABELS.get(gpu) ?? {};
  const stamp = `${activities.count} ${apiCalls.count} ${strings.count}`;
  if (known[name]?.stamp === stamp) {
    return known[name];
  }
  const labels = { ...make(), stamp };
  if (activities.count <= MOST_REMEMBERED) {
    LABELS.set(gpu, { ...known, [name]: labels });
  }
  return labels;
}

/** The kernels of a device by name, or of one row by line, most time first. */
export function kernelRows(
  contents: DeviceContents,
  window: Window,
  of?: KernelRow,
): readonly KernelRow[] {
  const { gpu, stacks, device } = contents;
  const { activities, apiCalls, strings } = gpu;
  const { kind, device: deviceOf, name, launch } = activities;
  const numbers = numbersOf((id) => strings.get(id));
  const stackOf = stackOfLaunch(gpu);
  const wanted = of && numbers(name[of.typical] ?? 0);
  const lineOf = lineOfLaunch(contents);
  const keyOf: KeyOf = (row) => {
    if (kind[row] !== ActivityKind.kernel || deviceOf[row] !== device) {
      return NO_KEY;
    }
    const number = numbers(name[row] ?? 0);
    return wanted === undefined ? number : number === wanted ? lineOf(row) : NO_KEY;
  };
  const kindOf: KeyOf = (row) => stackOf(row) * 2 ** 26 + (launch[row] ?? 0);
  const { fromNs, correlation } = activities;
  const { toNs: returnedNs } = apiCalls;
  const delayOf: KeyOf = (row) => {
    const call = apiCalls.of(correlation[row]);
    return call < 0 ? NaN : Math.max((fromNs[row] ?? 0) - (returnedNs[call] ?? 0), 0);
  };
  const make = (): Labels => label(activities.count, keyOf, kindOf, delayOf);
  const labels = of === undefined ? remembered(gpu, `kernels of ${device}`, make) : make();
  const groups = groupRows(activities, labels, covered(gpu, window));
  const ofNs = of?.ofNs ?? groups.reduce((sum, { totalNs }) => sum + totalNs, 0);
  const kernels = groups.map((group) => ({
    ...group,
    name: strings.get(name[group.typical] ?? 0),
    short: gpu.kernelName(name[group.typical] ?? 0),
    ...callSitesOf(group, (row) => stacks.callSiteOf(stackOf(row))),
    share: group.totalNs / Math.max(ofNs, 1),
    ofNs,
    isPart: of !== undefined,
    launchDelayNs: knownMedian(group.values),
    launch: gpu.configurations.get(launch[group.typical] ?? 0),
    longest: activity(gpu, group.longest),
  }));
  return kernels.sort(
    (left, right) =>
      right.totalNs - left.totalNs ||
      right.count - left.count ||
      (left.name < right.name ? -1 : left.name > right.name ? 1 : 0),
  );
}

/** The median of the values that are known, which it puts in another order. */
function knownMedian(values: Float64Array<ArrayBuffer>): number | undefined {
  // Not by `filter`, which takes ten times as long.
  let known = 0;
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at] ?? NaN;
    if (!Number.isNaN(value)) {
      values[known] = value;
      known += 1;
    }
  }
  return medianOf(values.subarray(0, known));
}

/** The copies of a device by kind and kind of host memory, or of one row by line. */
export function copyRows(
  contents: DeviceContents,
  window: Window,
  of?: CopyRow,
): readonly CopyRow[] {
  const { gpu, stacks, device } = contents;
  const { activities } = gpu;
  const { kind, device: deviceOf, copyKind, hostMemory } = activities;
  const stackOf = stackOfLaunch(gpu);
  const kindOf = joined(
    (row) => copyKind[row] ?? 0,
    (row) => hostMemory[row] ?? 0,
  );
  const wanted = of && kindOf(of.typical);
  const lineOf = lineOfLaunch(contents);
  const keyOf: KeyOf = (row) => {
    if (kind[row] !== ActivityKind.memcpy || deviceOf[row] !== device) {
      return NO_KEY;
    }
    return wanted === undefined ? kindOf(row) : kindOf(row) === wanted ? lineOf(row) : NO_KEY;
  };
  const make = (): Labels => label(activities.count, keyOf, stackOf);
  const labels = of === undefined ? remembered(gpu, `copies of ${device}`, make) : make();
  return groupRows(activities, labels, covered(gpu, window)).map((group) => {
    let [bytes, wholeNs] = [0, 0];
    for (const row of group.rows) {
      bytes += activities.bytes[row] ?? 0;
      wholeNs += lengthIn(undefined, activities, row);
    }
    return {
      ...group,
      isPart: of !== undefined,
      bytes,
      copyKind: COPY_KINDS[copyKind[group.typical] ?? 0] ?? "",
      hostMemory: activities.hostMemoryOf(group.typical),
      ...callSitesOf(group, (row) => stacks.callSiteOf(stackOf(row))),
      bytesPerSecond: wholeNs === 0 ? undefined : (bytes * 1e9) / wholeNs,
      longest: activity(gpu, group.longest),
    };
  });
}

/**
 * What made the host wait for a device, or for an unknown one in its process, by line, most time
 * first.
 */
export function synchronizationRows(
  { gpu, stacks, device }: DeviceContents,
  window: Window,
): readonly SynchronizationRow[] {
  const { hostWaits, processes, strings } = gpu;
  const lines = numbersOf((id) => stacks.callSiteOf(id).site);
  const names = numbersOf((id) => strings.get(id));
  const stackOf: KeyOf = (row) => hostWaits.stack[row] ?? 0;
  const kindOf = joined(
    (row) => lines(stackOf(row)),
    (row) => hostWaits.kind[row] ?? 0,
    (row) => names(hostWaits.name[row] ?? 0),
  );
  const keyOf: KeyOf = (row) => {
    const waited = hostWaits.device[row] ?? -1;
    const isOwn =
      waited < 0 ? processes.isThreadOf(hostWaits.thread[row] ?? 0, device) : waited === device;
    return isOwn ? kindOf(row) : NO_KEY;
  };
  const inside = covered(gpu, window);
  const labels = label(hostWaits.count, keyOf, stackOf);
  return groupRows(hostWaits, labels, inside).map((group) => {
    let [waiting, transfer, known] = [0, 0, 0];
    for (const row of group.rows) {
      const waitingNs = hostWaits.waitingNs[row] ?? NaN;
      if (!Number.isNaN(waitingNs)) {
        const fromNs = [hostWaits.fromNs[row] ?? 0];
        const began = [(fromNs[0] ?? 0) + waitingNs];
        waiting += lengthIn(inside, { fromNs, toNs: began }, 0);
        transfer += lengthIn(inside, { fromNs: began, toNs: [hostWaits.toNs[row] ?? 0] }, 0);
        known += 1;
      }
    }
    return {
      ...group,
      isPart: false,
      waitedFor: hostWaits.waitedFor(group.typical),
      name: strings.get(hostWaits.name[group.typical] ?? 0),
      ...callSitesOf(group, (row) => stacks.callSiteOf(stackOf(row))),
      waitingNs: known === 0 ? undefined : waiting,
      transferNs: known === 0 ? undefined : transfer,
      longest: waitOf(gpu, group.longest),
    };
  });
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

/** The call stack of the call that launched an activity; 0 while unknown. */
export function stackOfLaunch(gpu: GpuActivities): KeyOf {
  const { apiCalls } = gpu;
  const { correlation } = gpu.activities;
  return (row) => apiCalls.stackOf(correlation[row]);
}

/** A number for the line that launched an activity; wrong once its call arrives later. */
function lineOfLaunch({ gpu, stacks }: DeviceContents): KeyOf {
  const stackOf = stackOfLaunch(gpu);
  const lines = numbersOf((stack) => stacks.callSiteOf(stack).site);
  return (row) => lines(stackOf(row));
}

function activity({ activities }: GpuActivities, row: number): Selected {
  return { kind: "span", spanKind: spanKindOf(activities)(row), row };
}

/** The span of a row of `HostWaits`. */
export function waitOf({ hostWaits }: GpuActivities, row: number): Selected {
  return hostWaits.isOfCopy(row)
    ? { kind: "span", spanKind: SpanKind.call, row: hostWaits.call[row] ?? 0 }
    : { kind: "span", spanKind: SpanKind.wait, row };
}
