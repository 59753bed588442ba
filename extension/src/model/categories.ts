import type { BlockGroups } from "./block_groups.ts";
import type { Bytes } from "./events.ts";

/** How many categories have a colour of their own; the palette has no more safe ones. */
export const COLOURED = 7;

/** The blocks sorted into a few named categories, the last of which collects the rest. */
export interface Categories {
  readonly labels: readonly string[];
  readonly groups: BlockGroups;
  /** For each group the place of its label; COLOURED where it belongs to the rest. */
  readonly ofGroup: Bytes;
  /** Whether the labels go from small to large. */
  readonly isOrdered: boolean;
}

/** The place of a block's label. */
export function categoryOf({ groups, ofGroup }: Categories, block: number): number {
  return ofGroup[groups.ofBlock[block] ?? -1] ?? COLOURED;
}

/**
 * Joins groups of blocks that have the same label.
 *
 * The labels with the most bytes at the peak come first, then those with the most bytes in all.
 */
export function categorize(
  groups: BlockGroups,
  labelOf: (id: number) => string,
  restLabel: string,
): Categories {
  const sums = new Map<string, { atPeak: number; total: number }>();
  const atPeak = groups.bytesAtPeak();
  const labels = groups.ids.map(labelOf);
  labels.forEach((label, group) => {
    const sum = sums.get(label) ?? { atPeak: 0, total: 0 };
    sum.atPeak += atPeak[group] ?? 0;
    sum.total += groups.totalBytes(group);
    sums.set(label, sum);
  });
  const ranked = [...sums]
    .toSorted(([, left], [, right]) => right.atPeak - left.atPeak || right.total - left.total)
    .map(([label]) => label);
  const coloured = new Map(ranked.slice(0, COLOURED).map((label, place) => [label, place]));
  return {
    labels: ranked.length > COLOURED ? [...coloured.keys(), restLabel] : [...coloured.keys()],
    groups,
    ofGroup: Uint8Array.from(labels, (label) => coloured.get(label) ?? COLOURED),
    isOrdered: false,
  };
}

/** Groups whose ids are steps of a quantity, each with a label. */
export function grade(groups: BlockGroups, labels: readonly string[]): Categories {
  return { labels, groups, ofGroup: Uint8Array.from(groups.ids), isOrdered: true };
}

/** Whether two are of the same groups, with the same labels and the same colours. */
export function isSame(left: Categories, right: Categories): boolean {
  return (
    left.groups === right.groups &&
    left.labels.join("\n") === right.labels.join("\n") &&
    left.ofGroup.length === right.ofGroup.length &&
    left.ofGroup.every((place, group) => place === right.ofGroup[group])
  );
}
