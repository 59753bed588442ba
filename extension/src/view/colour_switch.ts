import { formatBytes, formatCount, formatShare } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { GROUPINGS } from "../model/block_groups.ts";
import { NO_EVENT } from "../model/blocks.ts";
import { categoryOf, COLOURED } from "../model/categories.ts";
import type { ChartContext } from "./chart_context.ts";
import { element, legendEntry } from "./dom.ts";

/** Names the colours of the blocks, with the bytes at the cursor or at the moment shown. */
export function categoriesLegend(scope: Scope, parent: HTMLElement, chart: ChartContext): void {
  const { grouping, selection } = chart;
  const list = element("ul", "gpuviz-legend");
  parent.append(list);
  let entries: readonly { value: HTMLElement; holders: HTMLElement }[] = [];
  scope.follow(() => {
    const { all, isOrdered } = grouping.categories.value;
    const items = all.map(({ short, long, bytesAtPeak }, index) => {
      const item = legendEntry("gpuviz-key--group", short);
      item.title = `${long}: ${formatBytes(bytesAtPeak)} at the peak`;
      const colour = isOrdered ? `order-${index}` : `category-${Math.min(index, COLOURED)}`;
      item.style.setProperty("--gpuviz-group", `var(--gpuviz-${colour})`);
      const value = element("span", "gpuviz-legend__value");
      const holders = element("div", "gpuviz-legend__holders");
      item.prepend(value);
      item.append(holders);
      return { item, value, holders };
    });
    list.replaceChildren(...items.map(({ item }) => item));
    entries = items;
  }, grouping.categories);
  const show = (): void => {
    const { row } = selection.shownState(chart.timeline);
    const bytes = grouping.levels.after(row);
    const total = chart.timeline.lines.allocated.values[row] ?? 0;
    const held = row === chart.timeline.events.count - 1 ? heldAtEnd(chart) : [];
    entries.forEach(({ value, holders }, place) => {
      const part = bytes[place] ?? 0;
      const share = element("span", "gpuviz-legend__share", `, ${formatShare(part / total)}`);
      value.replaceChildren(...(part === 0 ? [] : [formatBytes(part), share]));
      holders.textContent = held[place] ?? "";
    });
  };
  const { cursorNs, momentRow, window: shown } = selection;
  scope.follow(show, cursorNs, momentRow, shown.range, chart.revision, grouping.categories);
}

/** What holds large blocks of each category at the end; nothing where that is unknown. */
function heldAtEnd({ grouping, names, timeline }: ChartContext): string[] {
  const { address, count, freeCompleted } = timeline.blocks;
  const held: string[][] = [];
  for (let block = 0; block < (names.holders.size && count); block += 1) {
    const holder = names.holders.get(address[block] ?? 0);
    if (freeCompleted[block] === NO_EVENT && holder !== undefined) {
      (held[categoryOf(grouping.categories.value, block)] ??= []).push(holder);
    }
  }
  return held.map(([first, ...others]) => {
    const more = others.length === 0 ? "" : ` and ${formatCount(others.length)} more`;
    return `held by ${first}${more}`;
  });
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
      const ways = GROUPINGS.filter(
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
    const [by] = GROUPINGS.find(([each]) => each === choice.value) ?? GROUPINGS[0];
    chart.grouping.choose(by, chart.contents);
  });
}
