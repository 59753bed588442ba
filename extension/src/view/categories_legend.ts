import type { Signal } from "../base/signal.ts";
import { COLOURED, type Categories } from "../model/categories.ts";
import { element } from "./dom.ts";

/** Names the colours of the blocks. */
export function categoriesLegend(parent: HTMLElement, categories: Signal<Categories>): () => void {
  const list = element("ul", "gpuviz-legend");
  parent.append(list);
  const show = (): void => {
    const groups = categories.value.labels.map((label, index) =>
      entry(`gpuviz-key--category-${Math.min(index, COLOURED)}`, label),
    );
    const cached = entry("gpuviz-key--cached", "free (cached)");
    const pending = entry("gpuviz-key--pending", "free pending (striped)");
    list.replaceChildren(...groups, cached, pending);
  };
  show();
  return categories.subscribe(show);
}

function entry(key: string, label: string): HTMLLIElement {
  const item = element("li", "gpuviz-legend__entry");
  item.append(element("span", `gpuviz-key ${key}`), label);
  return item;
}
