import { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { BlockGroups, type GroupedBy } from "../model/block_groups.ts";
import { categorize, isSame, type Categories } from "../model/categories.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import type { Names } from "../model/names.ts";
import type { Stacks } from "../model/stacks.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";

/** The ways to group blocks by colour, and the one in force. */
export class Grouping {
  readonly categories: Signal<Categories>;
  readonly #siteOf = new Map<number, string>();
  #timeline: DeviceTimeline;
  #groups: BlockGroups;
  #by: GroupedBy = "stack";

  constructor({ timeline, stacks, names }: DeviceContents) {
    this.#timeline = timeline;
    this.#groups = new BlockGroups(timeline, this.#by);
    this.categories = new Signal(this.#categorize(stacks, names));
  }

  choose(by: GroupedBy, contents: DeviceContents): void {
    this.#by = by;
    this.#regroup(contents.timeline);
    this.update(contents);
  }

  /** Takes in what was added to the timeline, or another one. */
  update({ timeline, stacks, names }: DeviceContents): void {
    if (timeline !== this.#timeline) {
      this.#regroup(timeline);
    }
    const categories = this.#categorize(stacks, names);
    if (!isSame(categories, this.categories.value)) {
      this.categories.value = categories;
    }
  }

  #regroup(timeline: DeviceTimeline): void {
    this.#timeline = timeline;
    this.#groups = new BlockGroups(timeline, this.#by);
  }

  #categorize(stacks: Stacks, names: Names): Categories {
    this.#groups.extend();
    return this.#by === "stream"
      ? categorize(this.#groups, names.stream, "other streams")
      : categorize(this.#groups, (stack) => this.#site(stack, stacks), "other lines");
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

/** Lets the reader choose what the colours of blocks mean. */
export function colourSwitch(parent: HTMLElement, chart: ChartContext): Scope {
  const scope = new Scope();
  const label = element("label", "gpuviz-controls", "Colour by ");
  const choice = element("select", "gpuviz-select");
  choice.append(new Option("line that allocated", "stack"), new Option("stream", "stream"));
  label.append(choice);
  parent.append(label);
  scope.listen(choice, "change", () => {
    const by = choice.value === "stream" ? "stream" : "stack";
    chart.grouping.choose(by, chart.contents);
  });
  return scope;
}
