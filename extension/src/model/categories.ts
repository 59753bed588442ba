import type { BlockGroups } from "./block_groups.ts";
import type { Bytes } from "./events.ts";

/** How many categories have a colour of their own; the palette has no more safe ones. */
export const COLOURED = 9;

/** What a category is called: in a chart, where there is little room, and in a legend. */
export interface CategoryName {
  readonly short: string;
  readonly long: string;
}

export interface Category extends CategoryName {
  /** What its blocks have in common. */
  readonly label: string;
  /** The bytes allocated in its blocks when most was allocated. */
  readonly bytesAtPeak: number;
}

/** The blocks sorted into a few named categories, the last of which collects the rest. */
export interface Categories {
  readonly all: readonly Category[];
  readonly groups: BlockGroups;
  /** For each group the place of its category; COLOURED where it belongs to the rest. */
  readonly ofGroup: Bytes;
  /** Whether the categories go from small to large. */
  readonly isOrdered: boolean;
}

/** The place of a block's category. */
export function categoryOf({ groups, ofGroup }: Categories, block: number): number {
  return ofGroup[groups.groupOf(block)] ?? COLOURED;
}

/**
 * Joins groups of blocks that have the same label.
 *
 * The labels with the most bytes at the peak come first, then those with the most bytes in all.
 * `nameOf` names a label, given the id of the first group that has it.
 */
export function categorize(
  groups: BlockGroups,
  labelOf: (id: number) => string,
  restLabel: string,
  nameOf = (id: number): CategoryName => ({ short: labelOf(id), long: labelOf(id) }),
): Categories {
  const sums = new Map<string, { id: number; bytesAtPeak: number; total: number }>();
  const bytesAtPeak = groups.bytesAtPeak();
  const labels = groups.ids.map((id, group) => {
    const label = labelOf(id);
    const sum = sums.get(label) ?? { id, bytesAtPeak: 0, total: 0 };
    sum.bytesAtPeak += bytesAtPeak[group] ?? 0;
    sum.total += groups.totalBytes(group);
    sums.set(label, sum);
    return label;
  });
  const ranked = [...sums].toSorted(
    ([, left], [, right]) => right.bytesAtPeak - left.bytesAtPeak || right.total - left.total,
  );
  const rest = ranked.splice(COLOURED);
  const all: Category[] = ranked.map(([label, { id, bytesAtPeak: bytes }]) => ({
    ...nameOf(id),
    label,
    bytesAtPeak: bytes,
  }));
  if (rest.length > 0) {
    const bytes = rest.reduce((sum, [, each]) => sum + each.bytesAtPeak, 0);
    all.push({ label: restLabel, short: restLabel, long: restLabel, bytesAtPeak: bytes });
  }
  const places = new Map(ranked.map(([label], place) => [label, place]));
  const ofGroup = Uint8Array.from(labels, (label) => places.get(label) ?? COLOURED);
  return { all, groups, ofGroup, isOrdered: false };
}

/** Groups whose ids are steps of a quantity, each with a label. */
export function grade(groups: BlockGroups, labels: readonly string[]): Categories {
  const bytes = groups.bytesAtPeak();
  const all = labels.map((label, place) => ({
    label,
    short: label,
    long: label,
    bytesAtPeak: bytes[groups.ids.indexOf(place)] ?? 0,
  }));
  return { all, groups, ofGroup: Uint8Array.from(groups.ids), isOrdered: true };
}

/** Whether two are of the same groups, with the same names and the same colours. */
export function isSame(left: Categories, right: Categories): boolean {
  return (
    left.groups === right.groups &&
    JSON.stringify(left.all) === JSON.stringify(right.all) &&
    left.ofGroup.length === right.ofGroup.length &&
    left.ofGroup.every((place, group) => place === right.ofGroup[group])
  );
}
