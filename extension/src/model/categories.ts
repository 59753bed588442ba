import { countBelow } from "../base/search.ts";
import { isActiveAfter, originOf, type Blocks } from "./blocks.ts";
import type { Bytes, MemoryEvents } from "./events.ts";

/** How many categories have a colour of their own; the palette has no more safe ones. */
export const COLOURED = 7;

/** The blocks sorted into a few named groups, the last of which collects the rest. */
export interface Categories {
  readonly labels: readonly string[];
  /** For each block the place of its label; COLOURED where it belongs to the rest. */
  readonly ofBlock: Bytes;
  /** Whether the labels go from small to large. */
  readonly isOrdered: boolean;
}

/**
 * Groups blocks by a label of the event that made them.
 *
 * The groups with the most bytes after `row` come first, then those with the most bytes in all.
 */
export function groupBlocks(
  events: MemoryEvents,
  blocks: Blocks,
  row: number,
  labelOfEvent: (row: number) => string,
  restLabel: string,
): Categories {
  const labels = new Map<string, { live: number; total: number }>();
  const ofBlock: string[] = [];
  for (let block = 0; block < blocks.count; block += 1) {
    const label = labelOfEvent(originOf(blocks, block));
    const bytes = blocks.size[block] ?? 0;
    const sum = labels.get(label) ?? { live: 0, total: 0 };
    sum.total += bytes;
    sum.live += isActiveAfter(blocks, block, row) ? bytes : 0;
    labels.set(label, sum);
    ofBlock.push(label);
  }
  const ranked = [...labels]
    .toSorted(([, left], [, right]) => right.live - left.live || right.total - left.total)
    .map(([label]) => label);
  const coloured = new Map(ranked.slice(0, COLOURED).map((label, index) => [label, index]));
  return {
    labels: ranked.length > COLOURED ? [...coloured.keys(), restLabel] : [...coloured.keys()],
    ofBlock: Uint8Array.from(ofBlock, (label) => coloured.get(label) ?? COLOURED),
    isOrdered: false,
  };
}

/** Blocks by a quantity that each has, in steps; `limits` are the ends of all steps but the last. */
export function gradeBlocks(
  blocks: Blocks,
  limits: readonly number[],
  labels: readonly string[],
  quantityOf: (block: number) => number,
): Categories {
  const ofBlock = new Uint8Array(blocks.count);
  for (let block = 0; block < blocks.count; block += 1) {
    ofBlock[block] = countBelow(limits, quantityOf(block));
  }
  return { labels, ofBlock, isOrdered: true };
}

/** A function of an id that computes each answer once. */
export function memoized(compute: (id: number) => string): (id: number) => string {
  const known = new Map<number, string>();
  return (id) => {
    const answer = known.get(id) ?? compute(id);
    known.set(id, answer);
    return answer;
  };
}
