import { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { inPlacesOf, lineKeys, type Corresponding } from "../model/correspondence.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import { ChartContext } from "./chart_context.ts";
import { colourSwitch } from "./colour_switch.ts";
import { comparedParts } from "./compared_tables.ts";
import { addTracks, type Places } from "./device_view.ts";
import { element } from "./dom.ts";
import { Drawer } from "./drawer.ts";
import type { Frames } from "./frames.ts";
import { helpDialog } from "./help.ts";
import { linkCharts } from "./linked_charts.ts";
import { measuredPanel } from "./measured_panel.ts";
import { minimap } from "./minimap.ts";
import { momentControls } from "./moment_controls.ts";
import { momentView } from "./moment_view.ts";
import { Panes } from "./panes.ts";
import { ruler } from "./ruler.ts";
import { searchBox } from "./search_box.ts";
import { selectedPanel } from "./selected_panel.ts";
import { tablesView } from "./tables_view.ts";
import { addTimelineKeys } from "./timeline_keys.ts";
import { shownWindow, windowControls } from "./window_controls.ts";

const DRAWER_HEIGHT = "max(38%, 230px)";

/** Two recordings on aligned axes with one selection, and a drawer with what differs. */
export interface ComparedView {
  readonly scope: Scope;
  /** The first recording's. */
  readonly chart: ChartContext;
  readonly panes: Panes;
  readonly drawer: Drawer;
}

/** The tracks of one device in two recordings, each kind of track below the other, and a drawer. */
export function comparedView(
  places: Places,
  frames: Frames,
  contents: readonly [before: DeviceContents, after: DeviceContents],
  found: Corresponding,
): ComparedView {
  const { charts: root, controls = root, keys: keysFrom = root, tooltips = document.body } = places;
  const scope = new Scope();
  const chartOf = (side: 0 | 1, title: string): ChartContext =>
    new ChartContext(scope, frames, contents[side], tooltips, title);
  const charts = [chartOf(0, "Before"), chartOf(1, "After")] as const;
  const [before, after] = charts;
  const isLinked = new Signal(true);
  linkCharts(scope, charts, found.anchors, isLinked);
  [before.beside, after.beside] = [after, before];
  const keys = lineKeys(found);
  after.grouping.arrange = (own) => inPlacesOf(before.grouping.categories.value, own, keys);
  scope.follow(() => {
    after.grouping.choose(before.grouping.by, after.contents);
  }, before.grouping.categories);
  const bar = element("div", "gpuviz-toolbar");
  scope.append(controls, bar);
  const help = helpDialog(scope, bar);
  const search = searchBox(scope, bar, charts);
  colourSwitch(scope, bar, before);
  linkSwitch(scope, bar, isLinked);
  windowControls(scope, bar, before, help);
  for (const chart of charts) {
    const overview = element("div", "gpuviz-overview");
    scope.append(root, overview);
    minimap(scope, overview, chart);
    shownWindow(scope, overview, chart);
  }
  const panes = new Panes(scope, root);
  for (const chart of charts) {
    const axis = element("div", "gpuviz-ruler");
    panes.root.append(axis);
    ruler(scope, axis, chart);
    axis.append(element("p", "gpuviz-ruler__hint", chart.title));
  }
  addTracks(scope, panes, before);
  addTracks(scope, panes, after, true);
  const drawer = new Drawer(scope, panes, true, DRAWER_HEIGHT);
  const name = addPanels(scope, panes, drawer, charts);
  const active = activeSide(scope, root, charts);
  charts.forEach((chart) =>
    addTimelineKeys(scope, keysFrom, chart, { search, help, name }, () => active() === chart),
  );
  scope.use(tablesView(drawer, before, comparedParts(charts, found)).scope);
  return { scope, chart: before, panes, drawer };
}

function linkSwitch(scope: Scope, bar: HTMLElement, isLinked: Signal<boolean>): void {
  const label = element("label", "gpuviz-controls");
  const linked = element("input", "gpuviz-check", { type: "checkbox", checked: true });
  label.append(linked, "Show the same part of both");
  scope.append(bar, label);
  scope.listen(linked, "change", () => {
    isLinked.value = linked.checked;
  });
}

/** The charts that the keys are for: those that the pointer or the focus was in last. */
function activeSide(
  scope: Scope,
  root: HTMLElement,
  charts: readonly [ChartContext, ChartContext],
): () => ChartContext {
  let [active] = charts;
  const notice = ({ target }: Event): void => {
    const pane = target instanceof Element ? target.closest<HTMLElement>("[data-pane]") : null;
    const name = pane?.dataset["pane"] ?? "drawer";
    if (name !== "drawer") {
      active = charts[name.endsWith("after") ? 1 : 0];
    }
  };
  scope.listen(root, "pointerover", notice);
  scope.listen(root, "focusin", notice);
  for (const chart of charts) {
    const { selected } = chart.selection;
    scope.watch(() => {
      active = selected.value === undefined ? active : chart;
    }, selected);
  }
  return () => active;
}

/** The panels of the selection and of the moment, for either recording. */
function addPanels(
  scope: Scope,
  panes: Panes,
  drawer: Drawer,
  charts: readonly [ChartContext, ChartContext],
): () => void {
  const panel = drawer.add(scope, "selection", "Selection");
  const moment = drawer.add(scope, "moment", "At this moment");
  const names = charts.map((chart) => {
    const { selected, measured } = chart.selection;
    const name = measuredPanel(scope, drawer.top, chart);
    const place = element("div", "");
    const moments = element("div", "");
    place.append(element("h4", "gpuviz-compared__side", chart.title));
    moments.append(element("h4", "gpuviz-compared__side", chart.title));
    panel.append(place);
    moment.append(moments);
    const shown = selectedPanel(scope, place, chart);
    momentControls(scope, moments, chart);
    momentView(scope, moments, chart);
    scope.follow(() => {
      place.hidden = selected.value === undefined;
    }, selected);
    scope.watch(() => {
      chart.tooltip.hide();
      if (selected.value !== undefined) {
        drawer.open("selection");
      }
    }, selected);
    scope.watch(() => {
      if (measured.value !== undefined) {
        drawer.open(drawer.shown.value === "changes" ? "kernels" : drawer.shown.value);
      }
    }, measured);
    chart.showSelected = () => {
      drawer.open("selection");
      panes.root.scrollIntoView({ block: "nearest" });
      shown.focus({ preventScroll: true });
    };
    return name;
  });
  return names[0] ?? (() => undefined);
}
