import { formatBytes, formatShare } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import type { GroupedBy } from "../model/block_groups.ts";
import { COLOURED } from "../model/categories.ts";
import type { ChartContext } from "./chart_context.ts";
import { element, legendEntry } from "./dom.ts";

const WAYS: readonly (readonly [by: GroupedBy, text: string])[] = [
  ["stack", "source line"],
  ["function", "function"],
  ["module", "module"],
  ["phase", "training phase"],
  ["category", "category"],
  ["stream", "stream"],
  ["pool", "pool"],
  ["framework", "library"],
  ["size", "size class"],
  ["age", "lifetime"],
];

/** Names the colours of the blocks, with the bytes at the cursor or at the moment shown. */
export function categoriesLegend(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { grouping, selection } = chart;
  const list = element("ul", "gpuviz-legend");
  parent.append(list);
  let values: readonly HTMLElement[] = [];
  scope.follow(() => {
    const { all, isOrdered } = grouping.categories.value;
    const items = all.map(({ short, long, bytesAtPeak }, index) => {
      const item = legendEntry("gpuviz-key--group", short);
      item.title = `${long}: ${formatBytes(bytesAtPeak)} at the peak`;
      const colour = isOrdered ? `order-${index}` : `category-${Math.min(index, COLOURED)}`;
      item.style.setProperty("--gpuviz-group", `var(--gpuviz-${colour})`);
      const value = element("span", "gpuviz-legend__value");
      item.prepend(value);
      return { item, value };
    });
    list.replaceChildren(...items.map(({ item }) => item));
    values = items.map(({ value }) => value);
  }, grouping.categories);
  const show = (): void => {
    const { row } = selection.shownState(chart.timeline);
    const bytes = grouping.levels.after(row);
    const total = chart.timeline.lines.allocated.values[row] ?? 0;
    values.forEach((value, place) => {
      const part = bytes[place] ?? 0;
      value.textContent = part === 0 ? "" : `${formatBytes(part)}, ${formatShare(part / total)}`;
    });
  };
  const { cursorNs, momentRow, window: shown } = selection;
  scope.follow(show, cursorNs, momentRow, shown.range, chart.revision, grouping.categories);
}

/** Names what else is in the segment map. */
export function segmentsLegend(parent: HTMLElement): void {
  const list = element("ul", "gpuviz-legend");
  list.append(
    legendEntry("gpuviz-key--cached", "free"),
    legendEntry("gpuviz-key--pending", "free pending (striped)"),
  );
  parent.append(list);
}

/** Lets the reader choose what the colours of blocks mean. */
export function colourSwitch(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const label = element("label", "gpuviz-controls", "Colour by ");
  const choice = element("select", "gpuviz-select");
  label.append(choice);
  parent.append(label);
  scope.follow(
    () => {
      const { by: chosen } = chart.grouping;
      const { isShared } = chart.timeline.events;
      const { hasPhases } = chart.stacks;
      const isUseful = {
        framework: isShared,
        module: hasPhases,
        phase: hasPhases,
        category: chart.gpu.blockCategories.of(chart.device).size > 0,
      };
      const ways = WAYS.filter(
        ([by]) => by === chosen || !(by in isUseful) || isUseful[by as keyof typeof isUseful],
      );
      if (ways.length !== choice.options.length) {
        choice.replaceChildren(...ways.map(([by, text]) => new Option(text, by)));
      }
      choice.value = chosen;
    },
    chart.grouping.categories,
    chart.revision,
  );
  scope.listen(choice, "change", () => {
    const [by] = WAYS.find(([each]) => each === choice.value) ?? WAYS[0] ?? [];
    chart.grouping.choose(by ?? "stack", chart.contents);
  });
}
