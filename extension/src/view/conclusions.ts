import type { Scope } from "../base/scope.ts";
import type { Conclusions } from "../model/conclusions.ts";
import { lightsOf } from "../model/evidence.ts";
import type { Place } from "../model/sections.ts";
import { NOTHING_HIGHLIGHTED } from "../model/selected.ts";
import type { DeviceView } from "./device_view.ts";
import { iterationsRow } from "./iterations_row.ts";
import { otherMemoryTrack } from "./other_memory_track.ts";
import { drawLines } from "./sections_view.ts";

/** Of a track that was closed. */
const REVEALED_PX = 112;

/** Shows what Python concluded about a device: tracks, arrows, the drawer's sections and the head. */
export function showConclusions(
  scope: Scope,
  view: DeviceView,
  found: Conclusions,
  device: number,
  head: HTMLElement,
): void {
  const { chart, drawer } = view;
  const lead = (place: Place): void => leadTo(place, view);
  const iterations = found.iterations(device);
  if (iterations.length > 0) {
    iterationsRow(scope, view.panes.root, chart, iterations);
  }
  const otherMemory = found.otherMemory(device);
  if (otherMemory.length > 0) {
    otherMemoryTrack(scope, view, otherMemory);
  }
  const said = found.said(device);
  for (const { name, title, lines } of found.sections(device)) {
    const panel = name === "" ? head : drawer.add(scope, name, title);
    const drawn = lines.filter(({ kind }) => kind !== "device");
    drawLines(scope, panel, drawn, said, lead);
  }
  const arrows = said.filter(({ arrow }) => arrow !== undefined);
  chart.hazards.value = arrows.map((each) => ({ said: each, show: () => lead(each.place ?? {}) }));
  const { measured } = chart.selection;
  scope.watch(() => {
    if (measured.value === undefined) {
      chart.marked.value = [];
    }
  }, measured);
}

function leadTo({ window, tab, rows = [], evidence, number }: Place, view: DeviceView): void {
  const { drawer, chart, panes } = view;
  if (window !== undefined) {
    chart.selection.showMeasured(window);
    chart.marked.value = rows;
    const lights =
      evidence === undefined ? NOTHING_HIGHLIGHTED : lightsOf(evidence, chart.contents);
    chart.selection.highlighted.value = lights;
    if (lights.blocks.size > 0) {
      panes.reveal("blocks", REVEALED_PX);
    }
    if (lights.activities.size + lights.spans.length > 0) {
      panes.reveal("streams", REVEALED_PX);
    }
    panes.root.scrollIntoView({ block: "nearest" });
  }
  if (tab !== undefined) {
    drawer.open(tab);
    const item = drawer.panels.querySelector(`[data-panel=${tab}] [data-item="${number}"]`);
    (item ?? drawer.panels).scrollIntoView({ block: item === null ? "nearest" : "start" });
  }
}
