import { formatBytes, formatDuration } from "../base/format.ts";
import { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { NO_EVENT } from "../model/blocks.ts";
import { gradeBlocks, groupBlocks, memoized, type Categories } from "../model/categories.ts";
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

const KIB = 1024;
const SIZE_LIMITS = [512, 4 * KIB, 64 * KIB, KIB ** 2, 16 * KIB ** 2, 256 * KIB ** 2];
const AGE_LIMITS = [1e5, 1e6, 1e7, 1e8, 1e9, 10e9];

function group(by: string, timeline: DeviceTimeline, stacks: Stacks, names: Names): Categories {
  const { events, blocks, peak, endNs } = timeline;
  const named = (
    column: ArrayLike<number>,
    nameOf: (id: number) => string,
    rest: string,
  ): Categories => {
    const known = memoized(nameOf);
    return groupBlocks(events, blocks, peak, (row) => known(column[row] ?? 0), rest);
  };
  switch (by) {
    case "stream":
      return named(events.stream, names.stream, "other streams");
    case "pool":
      return named(events.pool, names.pool, "other pools");
    case "size": {
      const ends = SIZE_LIMITS.map((bytes) => formatBytes(bytes).replace(/\.0+ /, " "));
      return gradeBlocks(blocks, SIZE_LIMITS, steps(ends), (block) => blocks.size[block] ?? 0);
    }
    case "age": {
      const ends = AGE_LIMITS.map((ns) => formatDuration(ns).replace(/\.0+ /, " "));
      const timeOf = (row: number | undefined, missing: number): number =>
        events.timeNs[row ?? NO_EVENT] ?? missing;
      return gradeBlocks(
        blocks,
        AGE_LIMITS,
        steps(ends),
        (block) => timeOf(blocks.freeCompleted[block], endNs) - timeOf(blocks.allocated[block], 0),
      );
    }
    default:
      return named(events.stack, (stack) => stacks.siteOf(stack), "other lines");
  }
}

function steps(ends: readonly string[]): string[] {
  return [...ends.map((end) => `up to ${end}`), `more than ${ends.at(-1) ?? ""}`];
}

const WAYS = [
  ["line", "line that allocated"],
  ["stream", "stream"],
  ["pool", "pool"],
  ["size", "size class"],
  ["age", "age: how long it lived"],
] as const;

/** Lets the reader choose what the colours of blocks mean. */
export function colourSwitch(parent: HTMLElement, chart: ChartContext): Scope {
  const scope = new Scope();
  const label = element("label", "gpuviz-controls", "Colour by ");
  const choice = element("select", "gpuviz-select");
  choice.append(...WAYS.map(([way, text]) => new Option(text, way)));
  label.append(choice);
  parent.append(label);
  scope.listen(choice, "change", () => {
    chart.grouping.choose(choice.value, chart.timeline, chart.stacks, chart.names);
  });
  return scope;
}
