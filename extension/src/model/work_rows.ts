import { ActivityKind, COPY_KINDS } from "./activities.ts";
import {
  groupRows,
  medianOf,
  numbersOf,
  type Group,
  type KeyOf,
  type Lasting,
} from "./grouping.ts";
import { HOST_WAIT_KINDS } from "./host_calls.ts";
import type { LaunchConfiguration } from "./launch_configurations.ts";
import { OPEN } from "./ranges.ts";
import type { Selected } from "./selected.ts";
import { SpanKind, spanKindOf } from "./span_kinds.ts";
import type { Place, Stacks } from "./stacks.ts";
import type { Work } from "./work.ts";

/** A part of the time axis; undefined is all of it. */
export type Window = { readonly fromNs: number; readonly toNs: number } | undefined;

/** What the rows of a device are summed up from; of a window as `Recording.window` has them. */
interface Contents {
  readonly work: Work;
  readonly stacks: Stacks;
  readonly device: number;
}

/** What a row of a table of work has: how often and how long, where, and what took longest. */
interface WorkRow extends Omit<Group, "rows" | "longest"> {
  readonly place: Place;
  readonly longest: Selected;
}

/** What `Recording.kernels()` has in a row. */
export interface KernelRow extends WorkRow {
  readonly name: string;
  readonly share: number;
  readonly launchDelayNs: number | undefined;
  /** That of the most frequent launch. */
  readonly launch: LaunchConfiguration | undefined;
}

/** What `Recording.copies()` has in a row. */
export interface CopyRow extends WorkRow {
  readonly copyKind: string;
  readonly hostMemory: string;
  readonly bytes: number;
  readonly bytesPerSecond: number | undefined;
}

/** What `Recording.synchronizations("line")` has in a row. */
export interface SynchronizationRow extends WorkRow {
  readonly kind: string;
  readonly name: string;
  /** Undefined where it is known of none of them. */
  readonly waitingNs: number | undefined;
  readonly transferNs: number | undefined;
}

/** The kernels of a device by name, most time first. */
export function kernelRows({ work, stacks, device }: Contents, window: Window): KernelRow[] {
  const { activities, apiCalls, strings } = work;
  const { name, launch, fromNs } = activities;
  const rows = activitiesOf(work, ActivityKind.kernel, device, window);
  const stackOf: KeyOf = (row) => apiCalls.stack[callOf(work, row)] ?? 0;
  const numbers = numbersOf((id) => strings.get(id));
  const nameOf: KeyOf = (row) => numbers(name[row] ?? 0);
  const kinds = [nameOf, stackOf, (row: number) => launch[row] ?? 0];
  const groups = groupRows(activities, rows, [nameOf], kinds);
  const allNs = groups.reduce((sum, { totalNs }) => sum + totalNs, 0);
  const delaysOf = (own: readonly number[]): number[] =>
    own
      .map((row) => Math.max((fromNs[row] ?? 0) - (apiCalls.toNs[callOf(work, row)] ?? NaN), 0))
      .filter((delay) => !Number.isNaN(delay));
  const kernels = groups.map(({ rows: own, longest, ...group }) => ({
    ...group,
    name: strings.get(name[group.typical] ?? 0),
    place: stacks.placeOf(stackOf(group.typical)),
    share: group.totalNs / Math.max(allNs, 1),
    launchDelayNs: medianOf(delaysOf(own)),
    launch: work.configurations.get(launch[group.typical] ?? 0),
    longest: activity(work, longest),
  }));
  return kernels.sort(
    (left, right) =>
      right.totalNs - left.totalNs ||
      right.count - left.count ||
      (left.name < right.name ? -1 : left.name > right.name ? 1 : 0),
  );
}

/** The copies of a device by kind and the host's memory, most time first. */
export function copyRows({ work, stacks, device }: Contents, window: Window): CopyRow[] {
  const { activities, apiCalls } = work;
  const { copyKind, hostMemory, bytes } = activities;
  const rows = activitiesOf(work, ActivityKind.memcpy, device, window);
  const stackOf: KeyOf = (row) => apiCalls.stack[callOf(work, row)] ?? 0;
  const keys: KeyOf[] = [(row) => copyKind[row] ?? 0, (row) => hostMemory[row] ?? 0];
  return groupRows(activities, rows, keys, [stackOf]).map(({ rows: own, longest, ...group }) => {
    const total = own.reduce((sum, row) => sum + (bytes[row] ?? 0), 0);
    return {
      ...group,
      copyKind: COPY_KINDS[copyKind[group.typical] ?? 0] ?? "",
      hostMemory: activities.hostMemoryOf(group.typical),
      place: stacks.placeOf(stackOf(group.typical)),
      bytes: total,
      bytesPerSecond: group.totalNs === 0 ? undefined : (total * 1e9) / group.totalNs,
      longest: activity(work, longest),
    };
  });
}

/** What blocked the host, by line, most time first. */
export function synchronizationRows(
  { work, stacks }: Contents,
  window: Window,
): SynchronizationRow[] {
  const { hostWaits, strings } = work;
  const { kind, name, stack, waitingNs, transferNs } = hostWaits;
  const lines = numbersOf((id) => stacks.placeOf(id).site);
  const names = numbersOf((id) => strings.get(id));
  const stackOf: KeyOf = (row) => stack[row] ?? 0;
  const keys: KeyOf[] = [
    (row) => lines(stackOf(row)),
    (row) => kind[row] ?? 0,
    (row) => names(name[row] ?? 0),
  ];
  const rows = [...kind.keys()].filter((row) => isIn(window, hostWaits, row));
  return groupRows(hostWaits, rows, keys, [stackOf]).map(({ rows: own, longest, ...group }) => ({
    ...group,
    kind: HOST_WAIT_KINDS[kind[group.typical] ?? 0] ?? "",
    name: strings.get(name[group.typical] ?? 0),
    place: stacks.placeOf(stackOf(group.typical)),
    waitingNs: sumOfKnown(waitingNs, own),
    transferNs: sumOfKnown(transferNs, own),
    longest: wait(work, longest),
  }));
}

function activitiesOf(
  { activities }: Work,
  wanted: number,
  device: number,
  window: Window,
): number[] {
  const { kind, device: ordinals, count } = activities;
  const rows: number[] = [];
  for (let row = 0; row < count; row += 1) {
    if (kind[row] === wanted && ordinals[row] === device && isIn(window, activities, row)) {
      rows.push(row);
    }
  }
  return rows;
}

/** Whether a row overlaps a window; what lasted longer counts as a whole, what has no times too. */
function isIn(window: Window, { fromNs, toNs }: Lasting, row: number): boolean {
  const [from, to] = [fromNs[row] ?? 0, toNs[row] ?? 0];
  const hasNoTimes = from === 0 && to === 0;
  return (
    window === undefined ||
    hasNoTimes ||
    (from <= window.toNs && (to > window.fromNs || to === OPEN))
  );
}

/** The row of `ApiCalls` that launched an activity, the first of several; -1 if it is unknown. */
function callOf({ activities, apiCalls }: Work, row: number): number {
  return apiCalls.byCorrelation.first(activities.correlation[row] ?? 0);
}

function activity({ activities }: Work, row: number): Selected {
  return { kind: "span", spanKind: spanKindOf(activities)(row), row };
}

function wait({ hostWaits }: Work, row: number): Selected {
  const synchronization = hostWaits.synchronization[row] ?? -1;
  return synchronization >= 0
    ? { kind: "span", spanKind: SpanKind.wait, row: synchronization }
    : { kind: "span", spanKind: SpanKind.call, row: hostWaits.call[row] ?? 0 };
}

function sumOfKnown(values: ArrayLike<number>, rows: readonly number[]): number | undefined {
  const known = rows.map((row) => values[row] ?? NaN).filter((value) => !Number.isNaN(value));
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
}
