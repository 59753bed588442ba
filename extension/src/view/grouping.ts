import { formatBytes, formatDuration } from "../base/format.ts";
import { Signal } from "../base/signal.ts";
import { AGE_LIMITS, BlockGroups, SIZE_LIMITS, type GroupedBy } from "../model/block_groups.ts";
import {
  categorize,
  grade,
  isSame,
  type Categories,
  type CategoryName,
} from "../model/categories.ts";
import { CategoryLevels } from "../model/category_levels.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { nameFramework } from "../model/events.ts";
import type { Stacks } from "../model/stacks.ts";
import { BACKWARD_OF } from "../wire/codes.ts";

/** The ways to group blocks by colour, and the one in force. */
export class Grouping {
  readonly categories: Signal<Categories>;
  readonly #siteOf = new Map<number, string>();
  /** Gives categories the places that they have elsewhere. */
  arrange = (found: Categories): Categories => found;
  #timeline: DeviceTimeline;
  #groups: BlockGroups;
  #by: GroupedBy = "stack";
  /** The allocated bytes of the categories. */
  readonly levels: CategoryLevels;

  constructor(contents: DeviceContents) {
    this.#timeline = contents.timeline;
    this.#groups = new BlockGroups(contents.timeline, this.#by);
    this.categories = new Signal(this.#categorize(contents));
    this.levels = new CategoryLevels(this.categories.value);
  }

  /** The way in force. */
  get by(): GroupedBy {
    return this.#by;
  }

  /** The colour of the line of a call stack, while lines have colours. */
  colourOfStack(stack: number): string | undefined {
    const group = this.#groups.groupOfId(stack);
    const place = this.categories.value.ofGroup[group];
    return this.#by === "stack" && place !== undefined ? `category-${place}` : undefined;
  }

  choose(by: GroupedBy, contents: DeviceContents): void {
    this.#by = by;
    this.#regroup(contents.timeline);
    this.update(contents);
  }

  /** Takes in what was added to the timeline, or another one. */
  update(contents: DeviceContents): void {
    const { timeline } = contents;
    if (timeline !== this.#timeline || this.#by === "age") {
      this.#regroup(timeline);
    }
    const categories = this.arrange(this.#categorize(contents));
    this.levels.extend(categories);
    if (!isSame(categories, this.categories.value)) {
      this.categories.value = categories;
    }
  }

  #regroup(timeline: DeviceTimeline): void {
    this.#timeline = timeline;
    this.#groups = new BlockGroups(timeline, this.#by);
  }

  #categorize({ device, gpu, stacks, names }: DeviceContents): Categories {
    this.#groups.extend();
    const groups = this.#groups;
    switch (this.#by) {
      case "stream":
        return categorize(groups, names.stream, "other streams");
      case "pool":
        return categorize(groups, names.pool, "other pools");
      case "framework":
        return categorize(groups, nameFramework, "other libraries");
      case "size":
        return grade(groups, steps(SIZE_LIMITS.map(formatBytes)));
      case "age":
        return grade(groups, steps(AGE_LIMITS.map(formatDuration)));
      case "function":
        return categorize(
          groups,
          (stack) => stacks.functionOf(stack).long,
          "other functions",
          (stack) => stacks.functionOf(stack),
        );
      case "call":
        return categorize(
          groups,
          (stack) => stacks.innermostOf(stack).long,
          "other calls",
          (stack) => stacks.innermostOf(stack),
        );
      case "module":
        return categorize(groups, (stack) => stacks.moduleOf(stack), "other modules");
      case "category": {
        const categoryOf = gpu.blockCategories.of(device);
        return categorize(
          groups,
          (event) => categoryOf.get(event) ?? "unknown",
          "other categories",
        );
      }
      case "phase":
        return categorize(groups, (stack) => stacks.phaseOf(stack), "other phases");
      case "stack": {
        const nameOf = (stack: number): CategoryName => stacks.lineNameOf(stack);
        const siteOf = (stack: number): string => this.#site(stack, stacks);
        return withoutFile(categorize(groups, siteOf, "other lines", nameOf));
      }
    }
  }

  #site(stack: number, stacks: Stacks): string {
    const known = this.#siteOf.get(stack);
    if (known !== undefined) {
      return known;
    }
    const site = stacks.siteOf(stack);
    if (stacks.userFrameOf(stack) !== undefined) {
      this.#siteOf.set(stack, site);
    }
    return site;
  }
}

const LINE = new RegExp(`^(${BACKWARD_OF})?(.*?)(:\\d+)`);

/** Leaves out the file from the names of lines if all are in one. */
function withoutFile(categories: Categories): Categories {
  const files = new Set(categories.all.flatMap(({ short }) => LINE.exec(short)?.[2] ?? []));
  // The number comes first, as the end of a long name is cut.
  const withoutIts = (name: string): string => {
    const [start = "", before, , line = ""] = LINE.exec(name) ?? [];
    return start === "" ? name : `${line}${before ? " backward" : ""}${name.slice(start.length)}`;
  };
  const cut = (name: string): string => (files.size === 1 ? withoutIts(name) : name);
  const all = categories.all.map((each) => ({
    ...each,
    short: cut(each.short),
    long: cut(each.long),
  }));
  return { ...categories, all };
}

function steps(limits: readonly string[]): string[] {
  const ends = limits.map((limit) => limit.replace(/\.0+ /, " "));
  return [...ends.map((end) => `up to ${end}`), `more than ${ends.at(-1) ?? ""}`];
}
