import { formatBytes, formatDuration } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import { SpanRow } from "../model/span_row.ts";
import { Bands, SEPARATOR } from "./bands.ts";
import { makeSortable } from "./sortable_table.ts";
import type { DeviceView } from "./device_view.ts";

/**
 * Moves sections that Python wrote into the drawer, and lets the headline and the findings lead to
 * what they are about.
 *
 * The sections are put back when the scope ends.
 */
export function showConclusions(scope: Scope, view: DeviceView, root: ParentNode): void {
  const { drawer, chart } = view;
  for (const section of root.querySelectorAll<HTMLElement>("[data-panel]:not([role])")) {
    const home = section.parentElement;
    scope.defer(() => {
      section.role = null;
      home?.append(section);
    });
    const { panel = "", title = "" } = section.dataset;
    section.querySelectorAll<HTMLTableElement>("table[data-sortable]").forEach((table) => {
      makeSortable(scope, table);
    });
    drawer.add(scope, panel, title, section);
    if (panel === "request") {
      drawer.open(panel);
    }
  }
  const { measured } = chart.selection;
  scope.watch(() => {
    if (measured.value === undefined) {
      chart.marked.value = [];
    }
  }, measured);
  const list = root.querySelector<HTMLElement>("[data-iterations]")?.dataset["iterations"];
  if (list !== undefined) {
    chart.iterations.value = iterationBands(list);
    scope.defer(() => {
      chart.iterations.value = undefined;
    });
  }
  for (const each of root.querySelectorAll<HTMLElement>("[data-show], [data-tab]:not([role])")) {
    each.hidden = false;
    scope.listen(each, "click", () => follow(each, view));
  }
}

/** The iterations of a list of begins, ends and bytes at the peak. */
function iterationBands(list: string): Bands {
  const row = new SpanRow();
  const peaks = list.split(";").map((each, place) => {
    const [fromNs = 0, toNs = 0, peak = 0] = each.split(",").map(Number);
    row.push(fromNs, toNs, 0, place);
    return peak;
  });
  const nameOf = (_: SpanRow, span: number): string => {
    const duration = formatDuration((row.toNs[span] ?? 0) - (row.fromNs[span] ?? 0));
    const peak = `peak ${formatBytes(peaks[span] ?? 0)}`;
    return [String(span + 1), duration, peak].join(SEPARATOR);
  };
  return new Bands(() => row, nameOf);
}

function follow(link: HTMLElement, { drawer, chart, panes }: DeviceView): void {
  const { show, tab, number, rows = "[]" } = link.dataset;
  if (show !== undefined) {
    const [fromNs = 0, toNs = 1] = show.split("-").map(Number);
    chart.selection.showMeasured({ fromNs, toNs });
    chart.marked.value = JSON.parse(rows) as string[];
    panes.root.scrollIntoView({ block: "nearest" });
  }
  if (tab !== undefined) {
    drawer.open(tab);
    const item = drawer.panels.querySelector(`[data-panel=${tab}] [data-item="${number}"]`);
    (item ?? drawer.panels).scrollIntoView({ block: item === null ? "nearest" : "start" });
  }
}
