import type { Scope } from "../base/scope.ts";
import type { DeviceView } from "./device_view.ts";
import { iterationsRow, type Iteration } from "./iterations_row.ts";
import { otherMemoryTrack, type OtherMemory } from "./other_memory_track.ts";

/**
 * Moves sections that Python wrote into the drawer, and lets the headline and the findings lead to
 * what they are about.
 *
 * The sections are put back when the scope ends.
 */
export function showConclusions(scope: Scope, view: DeviceView, root: ParentNode): void {
  const { drawer, chart } = view;
  const links = root.querySelectorAll<HTMLElement>("[data-show], [data-tab]:not([role])");
  const { iterations = [], otherMemory = [] } = drawnIn(root);
  if (iterations.length > 0) {
    iterationsRow(scope, view.panes.root, chart, iterations);
  }
  if (otherMemory.length > 0) {
    otherMemoryTrack(scope, view, otherMemory);
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

/** Numbers that Python computed for the tracks. */
interface Drawn {
  readonly iterations?: readonly Iteration[];
  readonly otherMemory?: readonly OtherMemory[];
}

function drawnIn(root: ParentNode): Drawn {
  const json = root.querySelector("script[type='application/json']")?.textContent;
  return json == null ? {} : (JSON.parse(json) as Drawn);
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
