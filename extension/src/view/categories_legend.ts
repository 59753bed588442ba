import type { Scope } from "../base/scope.ts";
import type { Signal } from "../base/signal.ts";
import { COLOURED, type Categories } from "../model/categories.ts";
import { element } from "./dom.ts";

/** Names the colours of the blocks. */
export function categoriesLegend(
  scope: Scope,
  parent: HTMLElement,
  categories: Signal<Categories>,
): void {
  const list = element("ul", "gpuviz-legend");
  parent.append(list);
  scope.follow(() => {
    const { labels, isOrdered } = categories.value;
    const groups = labels.map((label, index) => {
      const item = legendEntry("gpuviz-key--group", label);
      const colour = isOrdered ? `order-${index}` : `category-${Math.min(index, COLOURED)}`;
      item.style.setProperty("--gpuviz-group", `var(--gpuviz-${colour})`);
      return item;
    });
    const cached = legendEntry("gpuviz-key--cached", "free");
    const pending = legendEntry("gpuviz-key--pending", "free pending (striped)");
    list.replaceChildren(...groups, cached, pending);
  }, categories);
}

export function legendEntry(key: string, label: string): HTMLLIElement {
  const item = element("li", "gpuviz-legend__entry");
  item.title = label;
  item.append(element("span", `gpuviz-key ${key}`), label);
  return item;
}
