import type { Scope } from "../base/scope.ts";
import type { DeviceView } from "./device_view.ts";
import { iterationsRow } from "./iterations_row.ts";
import { otherMemoryTrack } from "./other_memory_track.ts";

/**
 * Moves sections that Python wrote into the drawer, and lets the headline and the findings lead to
 * what they are about.
 *
 * The sections are put back when the scope ends.
 */
export function showConclusions(scope: Scope, view: DeviceView, root: ParentNode): void {
  const { drawer, chart } = view;
  const links = root.querySelectorAll<HTMLElement>("[data-show], [data-tab]:not([role])");
  const list = root.querySelector<HTMLElement>("[data-iterations]")?.dataset["iterations"];
  if (list !== undefined) {
    iterationsRow(scope, view.panes.root, chart, list);
  }
  const other = root.querySelector<HTMLElement>("[data-other-memory]")?.dataset["otherMemory"];
  if (other !== undefined) {
    otherMemoryTrack(scope, view, other);
  }
  for (const section of root.querySelectorAll<HTMLElement>("[data-panel]:not([role])")) {
    const home = section.parentElement;
    scope.defer(() => {
      section.role = null;
      home?.append(section);
    });
    const { panel = "", title = "" } = section.dataset;
    drawer.add(scope, panel, title, section);
    if (panel === "request") {
      drawer.open(panel);
    }
  }
  const hazards = root.querySelectorAll<HTMLElement>("[data-hazard]");
  chart.hazards.value = [...chart.hazards.value, ...hazards];
  const { measured } = chart.selection;
  scope.watch(() => {
    if (measured.value === undefined) {
      chart.marked.value = [];
    }
  }, measured);
  for (const each of links) {
    each.hidden = false;
    scope.listen(each, "click", () => follow(each, view));
  }
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
