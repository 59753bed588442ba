import { formatBytes, formatCount, formatDuration, formatShare } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import type { CallSite } from "../model/stacks.ts";
import type { Selected } from "../model/selected.ts";
import type { ChartContext } from "./chart_context.ts";
import type { TableColumn } from "./data_table.ts";
import { actionButton, element } from "./dom.ts";
import { reveal } from "./selected_panel.ts";

type NumberColumn = <Row>(
  title: string,
  hint: string,
  value: (row: Row) => number | undefined,
  small?: (row: Row) => string,
) => TableColumn<Row>;

/** Makes a column function for numbers in one format; undefined is shown as unknown. */
function columnsIn(format: (value: number) => string): NumberColumn {
  return (title, hint, value, small = () => "") => ({
    title,
    hint,
    value,
    text: (row) => {
      const known = value(row);
      return known === undefined ? "unknown" : format(known);
    },
    small,
  });
}

export const countColumn = columnsIn(formatCount);
export const bytesColumn = columnsIn(formatBytes);
export const speedColumn = columnsIn((bytesPerSecond) => `${formatBytes(bytesPerSecond)}/s`);
export const timeColumn = columnsIn(formatDuration);
export const shareColumn = columnsIn(formatShare);

/** A sample of a colour, by the rest of its custom property `--gpuviz-...`. */
export function colourKey(colour: string): HTMLElement {
  const key = element("span", "gpuviz-key gpuviz-key--group");
  key.style.setProperty("--gpuviz-group", `var(--gpuviz-${colour})`);
  return key;
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

/** A text that, when it is clicked, selects something and brings it into view. */
export function showLink(
  scope: Scope,
  chart: ChartContext,
  text: string,
  hint: string,
  selected: () => Selected,
): HTMLButtonElement {
  const link = actionButton(scope, text, hint, () => reveal(selected(), chart));
  link.className = "gpuviz-link";
  return link;
}
