import { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { groupBlocks, memoized, type Categories } from "../model/categories.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import type { Names } from "../model/names.ts";
import type { Stacks } from "../model/stacks.ts";
import type { ChartContext } from "./chart_context.ts";
import { element } from "./dom.ts";

/** The ways to group blocks by colour, and the one in force. */
export class Grouping {
  readonly categories: Signal<Categories>;
  #by = "line";

  constructor(timeline: DeviceTimeline, stacks: Stacks, names: Names) {
    this.categories = new Signal(group(this.#by, timeline, stacks, names));
  }

  choose(by: string, timeline: DeviceTimeline, stacks: Stacks, names: Names): void {
    this.#by = by;
    this.update(timeline, stacks, names);
  }

  update(timeline: DeviceTimeline, stacks: Stacks, names: Names): void {
    this.categories.value = group(this.#by, timeline, stacks, names);
  }
}

function group(by: string, timeline: DeviceTimeline, stacks: Stacks, names: Names): Categories {
  const { events, blocks, peak } = timeline;
  if (by === "stream") {
    const streamOf = memoized(names.stream);
    const labelOf = (row: number): string => streamOf(events.stream[row] ?? 0);
    return groupBlocks(events, blocks, peak, labelOf, "other streams");
  }
  const lineOf = memoized((stack) => stacks.siteOf(stack));
  const labelOf = (row: number): string => lineOf(events.stack[row] ?? 0);
  return groupBlocks(events, blocks, peak, labelOf, "other lines");
}

/** Lets the reader choose what the colours of blocks mean. */
export function colourSwitch(parent: HTMLElement, chart: ChartContext): Scope {
  const scope = new Scope();
  const label = element("label", "gpuviz-controls", "Colour by ");
  const choice = element("select", "gpuviz-select");
  choice.append(new Option("line that allocated", "line"), new Option("stream", "stream"));
  label.append(choice);
  parent.append(label);
  scope.listen(choice, "change", () => {
    chart.grouping.choose(choice.value, chart.timeline, chart.stacks, chart.names);
  });
  return scope;
}
