import { countAtMost } from "../base/search.ts";
import type { Blocks } from "./blocks.ts";
import type { Segments } from "./segments.ts";

interface Range {
  readonly from: number;
  readonly to: number;
}

/** Stacks every address that was ever reserved, in order, without the empty space between. */
export class AddressLayout {
  readonly totalBytes: number;
  readonly #from: readonly number[];
  readonly #offset: readonly number[];

  constructor(segments: Segments, blocks: Blocks) {
    const reserved = unite(rangesOf(segments.count, segments.from, segments.to));
    const regions = unite([...reserved, ...outside(reserved, blocks)]);
    let total = 0;
    this.#from = regions.map((region) => region.from);
    this.#offset = regions.map((region) => {
      total += region.to - region.from;
      return total - (region.to - region.from);
    });
    this.totalBytes = total;
  }

  /** The place of an address on the stacked axis, in bytes. */
  offsetOf(address: number): number {
    const region = countAtMost(this.#from, address) - 1;
    return (this.#offset[region] ?? 0) + address - (this.#from[region] ?? address);
  }
}

function rangesOf(count: number, from: ArrayLike<number>, to: ArrayLike<number>): Range[] {
  return Array.from({ length: count }, (_, index) => ({
    from: from[index] ?? 0,
    to: to[index] ?? 0,
  }));
}

/** Ranges that touch become one, so that an address has exactly one place. */
function unite(ranges: readonly Range[]): Range[] {
  const united: { from: number; to: number }[] = [];
  for (const range of ranges.toSorted((left, right) => left.from - right.from)) {
    const last = united.at(-1);
    if (last !== undefined && range.from <= last.to) {
      last.to = Math.max(last.to, range.to);
    } else {
      united.push({ ...range });
    }
  }
  return united;
}

/** Blocks of an allocator whose segments are not known. */
function outside(reserved: readonly Range[], blocks: Blocks): Range[] {
  const starts = reserved.map((range) => range.from);
  const strays: Range[] = [];
  for (let block = 0; block < blocks.count; block += 1) {
    const from = blocks.address[block] ?? 0;
    const to = from + (blocks.size[block] ?? 0);
    const home = reserved[countAtMost(starts, from) - 1];
    if (home === undefined || to > home.to) {
      strays.push({ from, to });
    }
  }
  return strays;
}
