import { formatBytes, formatCount, formatDuration, formatShare } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import type { CallSite } from "../model/stacks.ts";
import type { Selected } from "../model/selected.ts";
import type { ChartContext } from "./chart_context.ts";
import type { TableColumn } from "./data_table.ts";
import { actionButton, element } from "./dom.ts";
import { zoomTo } from "./selected_panel.ts";

export function countColumn<Row>(
  title: string,
  hint: string,
  value: (row: Row) => number,
): TableColumn<Row> {
  return { title, hint, value, text: (row) => formatCount(value(row)) };
}

export function bytesColumn<Row>(
  title: string,
  hint: string,
  value: (row: Row) => number,
  small: (row: Row) => string = () => "",
): TableColumn<Row> {
  return { title, hint, value, text: (row) => formatBytes(value(row)), small };
}

export function timeColumn<Row>(
  title: string,
  hint: string,
  value: (row: Row) => number | undefined,
): TableColumn<Row> {
  const text = (row: Row): string => {
    const ns = value(row);
    return ns === undefined ? "unknown" : formatDuration(ns);
  };
  return { title, hint, value, text };
}

export function shareColumn<Row>(
  title: string,
  hint: string,
  value: (row: Row) => number,
): TableColumn<Row> {
  return { title, hint, value, text: (row) => formatShare(value(row)) };
}

/** A line's source, where known, and where it stands; the whole path is in its title. */
export function appendCallSite(parent: HTMLElement, { source, site }: CallSite): void {
  const text = source.trim();
  if (text !== "") {
    parent.append(element("code", "gpuviz-code", text), " ");
  }
  const shown = element("span", "gpuviz-table__call-site", shortSite(site));
  shown.title = site;
  parent.append(shown);
}

/** A site with the last two parts of its path. */
function shortSite(site: string): string {
  return site.replace(/\((?:[^()]*[/\\])?([^()/\\]*[/\\][^()/\\]*:\d+)\)$/, "($1)");
}

/** A text that, when it is clicked, selects something in the charts and brings them into view. */
export function showLink(
  scope: Scope,
  chart: ChartContext,
  text: string,
  hint: string,
  selected: () => Selected,
): HTMLButtonElement {
  const link = actionButton(scope, text, hint, () => {
    chart.selection.selected.value = selected();
    zoomTo(selected(), chart);
    const page = link.closest(".gpuviz-widget") ?? document;
    page.querySelector(".gpuviz-section--controls")?.scrollIntoView();
  });
  link.className = "gpuviz-link";
  return link;
}
