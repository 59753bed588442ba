import type { Scope } from "../base/scope.ts";
import type { Conclusions, Place } from "../model/conclusions.ts";
import { conclusionsList, firstConclusions } from "./conclusions_list.ts";
import type { DeviceView } from "./device_view.ts";
import { iterationsRow } from "./iterations_row.ts";
import { otherMemoryTrack } from "./other_memory_track.ts";

const LISTS = ["findings", "hazards"] as const;

/** What a link of a section leads to. */
type Shown = Pick<DeviceView, "chart" | "panes" | "drawer">;

/** Shows what Python concluded about a device: tracks, arrows, the first conclusions and lists. */
export function showConclusions(
  scope: Scope,
  view: DeviceView,
  found: Conclusions,
  device: number,
  root: ParentNode,
): void {
  const { chart } = view;
  const lead = (place: Place): void => leadTo(place, view);
  chart.grouping.categoryOf.value = found.categories(device);
  const iterations = found.iterations(device);
  if (iterations.length > 0) {
    iterationsRow(scope, view.panes.root, chart, iterations);
  }
  const otherMemory = found.otherMemory(device);
  if (otherMemory.length > 0) {
    otherMemoryTrack(scope, view, otherMemory);
  }
  const findings = found.said(device, "findings");
  if (findings.length > 0) {
    show(scope, root.querySelector(".gpuviz-first"), firstConclusions(scope, findings, lead));
  }
  for (const name of LISTS) {
    const said = found.said(device, name);
    if (said.length > 0) {
      const list = conclusionsList(scope, said, lead);
      show(scope, root.querySelector(`[data-panel=${name}] .gpuviz-conclusions`), list);
    }
  }
  const arrows = found.said(device, "hazards").filter(({ arrow }) => arrow !== undefined);
  chart.hazards.value = arrows.map((said) => ({ said, show: () => lead(said.place ?? {}) }));
  const { measured } = chart.selection;
  scope.watch(() => {
    if (measured.value === undefined) {
      chart.marked.value = [];
    }
  }, measured);
  adoptSections(scope, view, root);
}

/** Shows the sections of a page in the drawer until the scope ends, and lets their links lead. */
export function adoptSections(scope: Scope, view: Shown, root: ParentNode): void {
  const links = root.querySelectorAll<HTMLElement>("[data-show], [data-tab]:not([role])");
  for (const section of root.querySelectorAll<HTMLElement>("[data-panel]:not([role])")) {
    const home = section.parentElement;
    scope.defer(() => {
      section.role = null;
      home?.append(section);
    });
    const { panel = "", title = "" } = section.dataset;
    view.drawer.add(scope, panel, title, section);
    if (panel === "request") {
      view.drawer.open(panel);
    }
  }
  for (const each of links) {
    scope.listen(each, "click", () => leadTo(placeOfLink(each), view));
  }
}

/** Shows an element in place of the static one until the scope ends. */
function show(scope: Scope, fixed: Element | null, shown: HTMLElement): void {
  if (fixed !== null) {
    fixed.replaceWith(shown);
    scope.defer(() => shown.replaceWith(fixed));
  }
}

/** The place that a link of a section leads to. */
function placeOfLink({ dataset: { show, tab } }: HTMLElement): Place {
  const [fromNs = 0, toNs = 1] = (show ?? "").split("-").map(Number);
  return { window: show === undefined ? undefined : { fromNs, toNs }, tab };
}

function leadTo({ window, tab, rows = [], number }: Place, view: Shown): void {
  const { drawer, chart, panes } = view;
  if (window !== undefined) {
    chart.selection.showMeasured(window);
    chart.marked.value = rows;
    panes.root.scrollIntoView({ block: "nearest" });
  }
  if (tab !== undefined) {
    drawer.open(tab);
    const item = drawer.panels.querySelector(`[data-panel=${tab}] [data-item="${number}"]`);
    (item ?? drawer.panels).scrollIntoView({ block: item === null ? "nearest" : "start" });
  }
}
