import { ActivityKind } from "./activities.ts";
import { byFirstDifference, groupsOf, medianOf, Pairs, TextNumbers, typicalRow } from "./groups.ts";
import { NO_CALL, type Place, type Places } from "./places.ts";
import type { Work } from "./work.ts";

type Shape = readonly [x: number, y: number, z: number];

/** What `Recording.kernels()` has in a row, and which launch took longest. */
export interface KernelRow {
  readonly name: string;
  readonly place: Place;
  readonly count: number;
  readonly totalNs: number;
  readonly medianNs: number;
  readonly minNs: number;
  readonly maxNs: number;
  readonly share: number;
  readonly launchDelayNs: number | undefined;
  readonly grid: Shape | undefined;
  readonly block: Shape | undefined;
  /** A row of `Activities`. */
  readonly longest: number;
}

/** The kernels of a device by name, most time first, by the rules of gpuviz/analysis/kernels.py. */
export function kernelRows(work: Work, places: Places, device: number): KernelRow[] {
  const { activities } = work;
  const { kind, device: ordinals, name, correlation, launch } = activities;
  const names = new TextNumbers((id) => work.strings.get(id));
  const [withStack, withLaunch] = [new Pairs(), new Pairs()];
  const rows: number[] = [];
  const calls = new Int32Array(activities.count).fill(NO_CALL);
  for (let row = 0; row < activities.count; row += 1) {
    if (kind[row] === ActivityKind.kernel && ordinals[row] === device) {
      rows.push(row);
      calls[row] = places.callOf(correlation[row] ?? 0);
    }
  }
  const numberOf = (row: number): number => names.of(name[row] ?? 0);
  const stackOf = (row: number): number => places.stackOf(calls[row] ?? NO_CALL);
  const kindOf = (row: number): number =>
    withLaunch.of(withStack.of(numberOf(row), stackOf(row)), launch[row] ?? 0);
  const groups = groupsOf(rows, numberOf).map((group) => {
    const typical = typicalRow(group, kindOf);
    const delays = delaysOf(work, group, calls);
    const shape = work.configurations.get(launch[typical] ?? 0);
    return {
      name: work.strings.get(name[typical] ?? 0),
      place: places.of(stackOf(typical)),
      ...timesOf(work, group),
      launchDelayNs: medianOf(delays),
      grid: shape?.grid,
      block: shape?.block,
    };
  });
  const all = Math.max(
    groups.reduce((sum, group) => sum + group.totalNs, 0),
    1,
  );
  return groups
    .map((group) => ({ ...group, share: group.totalNs / all }))
    .sort(
      byFirstDifference<KernelRow>(
        (left, right) => right.totalNs - left.totalNs,
        (left, right) => right.count - left.count,
        (left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0),
      ),
    );
}

/** How often and how long rows of `Activities` ran. */
export interface Times {
  readonly count: number;
  readonly totalNs: number;
  readonly medianNs: number;
  readonly minNs: number;
  readonly maxNs: number;
  readonly longest: number;
}

export function timesOf({ activities }: Work, rows: readonly number[]): Times {
  const { fromNs, toNs } = activities;
  const lengths = new Float64Array(rows.length);
  rows.forEach((row, index) => {
    lengths[index] = Math.max((toNs[row] ?? 0) - (fromNs[row] ?? 0), 0);
  });
  let [minNs, maxNs, totalNs, longest] = [Infinity, -1, 0, rows[0] ?? 0];
  lengths.forEach((length, index) => {
    totalNs += length;
    minNs = Math.min(minNs, length);
    if (length > maxNs) {
      maxNs = length;
      longest = rows[index] ?? longest;
    }
  });
  return {
    count: rows.length,
    totalNs,
    medianNs: medianOf(lengths) ?? 0,
    minNs,
    maxNs,
    longest,
  };
}

/** From the return of each kernel's launch call to its begin, where the call is known. */
function delaysOf(
  { activities, apiCalls }: Work,
  rows: readonly number[],
  calls: Int32Array<ArrayBuffer>,
): number[] {
  const { fromNs } = activities;
  const { toNs: returned } = apiCalls;
  return rows
    .filter((row) => calls[row] !== NO_CALL)
    .map((row) => Math.max((fromNs[row] ?? 0) - (returned[calls[row] ?? 0] ?? 0), 0));
}
