import { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { groupBlocks, memoized, type Categories } from "../model/categories.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import type { Names } from "../model/names.ts";
import type { Stacks } from "../model/stacks.ts";
import { element } from "./dom.ts";

/** The ways to group blocks by colour, and the one in force. */
export class Grouping {
  readonly categories: Signal<Categories>;
  readonly #byLine: () => Categories;
  readonly #byStream: () => Categories;

  constructor({ events, blocks, peak }: DeviceTimeline, stacks: Stacks, names: Names) {
    const lineOf = memoized((stack) => stacks.siteOf(stack));
    const streamOf = memoized(names.stream);
    const group = (labelOf: (row: number) => string, rest: string): Categories =>
      groupBlocks(events, blocks, peak, labelOf, rest);
    this.#byLine = () => group((row) => lineOf(events.stack[row] ?? 0), "other lines");
    this.#byStream = () => group((row) => streamOf(events.stream[row] ?? 0), "other streams");
    this.categories = new Signal(this.#byLine());
  }

  choose(by: string): void {
    this.categories.value = by === "stream" ? this.#byStream() : this.#byLine();
  }
}

/** Lets the reader choose what the colours of blocks mean. */
export function colourSwitch(parent: HTMLElement, grouping: Grouping): Scope {
  const scope = new Scope();
  const label = element("label", "gpuviz-controls", "Colour by ");
  const choice = element("select", "gpuviz-select");
  choice.append(new Option("line that allocated", "line"), new Option("stream", "stream"));
  label.append(choice);
  parent.append(label);
  scope.listen(choice, "change", () => {
    grouping.choose(choice.value);
  });
  return scope;
}
