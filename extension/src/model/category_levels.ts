import { GrowingFloats } from "../base/growing.ts";
import { COLOURED, type Categories } from "./categories.ts";
import type { Floats } from "./events.ts";

export const PLACES = COLOURED + 1;
/** Sums are kept before each of so many events; those after it are added up when asked for. */
const SPACING = 32;
const NO_BYTES: Floats = new Float64Array(PLACES);

/** The allocated bytes of each category after any event. */
export class CategoryLevels {
  #categories: Categories;
  readonly #sums = new GrowingFloats(16);
  /** The number of events that are summed up, and their sums. */
  #count = 0;
  readonly #total = new Float64Array(PLACES);
  /** The last answer, and the event that it is for. */
  readonly #found = new Float64Array(PLACES);
  #row = -1;

  constructor(categories: Categories) {
    this.#categories = categories;
    this.extend(categories);
  }

  /** Takes in new events; and all again if blocks are in other categories than before. */
  extend(categories: Categories): void {
    if (!continues(categories, this.#categories)) {
      this.#count = 0;
      this.#total.fill(0);
      this.#sums.truncate(0);
    }
    this.#categories = categories;
    this.#row = -1;
    const { count } = categories.groups.timeline.events;
    while (this.#count < count) {
      if (this.#count % SPACING === 0) {
        this.#sums.append(this.#total);
      }
      const end = Math.min(this.#count - (this.#count % SPACING) + SPACING, count);
      this.#add(this.#total, this.#count, end);
      this.#count = end;
    }
  }

  /**
   * The bytes by category after the event at `row`, or none before the first.
   *
   * The next call replaces them.
   */
  after(row: number): Floats {
    if (row < 0) {
      return NO_BYTES;
    }
    const first = row - (row % SPACING);
    let next = this.#row + 1;
    if (this.#row < 0 || next <= first || this.#row > row) {
      const place = (first / SPACING) * PLACES;
      this.#found.set(this.#sums.store.subarray(place, place + PLACES));
      next = first;
    }
    this.#add(this.#found, next, row + 1);
    this.#row = row;
    return this.#found;
  }

  #add(sums: Floats, first: number, last: number): void {
    const { groups, ofGroup } = this.#categories;
    const { blocks, events } = groups.timeline;
    const { ofBlock } = groups;
    blocks.changesIn(events, first, last, (block, bytes) => {
      const place = ofGroup[ofBlock[block] ?? 0] ?? COLOURED;
      sums[place] = (sums[place] ?? 0) + bytes;
    });
  }
}

/** Whether all blocks of the earlier categories are in the same of the later ones. */
function continues(later: Categories, earlier: Categories): boolean {
  return (
    later.groups === earlier.groups &&
    later.isOrdered === earlier.isOrdered &&
    earlier.ofGroup.every((place, group) => place === later.ofGroup[group])
  );
}
