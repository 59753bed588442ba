import { Scope } from "../base/scope.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import { ChartContext } from "./chart_context.ts";
import { categoriesLegend, colourSwitch } from "./colour_switch.ts";
import { element } from "./dom.ts";
import type { Frames } from "./frames.ts";
import { helpDialog } from "./help.ts";
import { idleSwitch } from "./idle_switch.ts";
import { kindsLegend } from "./kinds_legend.ts";
import { lanesView } from "./lanes_view.ts";
import { levelsLegend } from "./levels_legend.ts";
import { levelsView } from "./levels_view.ts";
import { mapView } from "./map_view.ts";
import { measuredPanel } from "./measured_panel.ts";
import { minimap } from "./minimap.ts";
import { momentControls } from "./moment_controls.ts";
import { momentView } from "./moment_view.ts";
import { selectedPanel } from "./selected_panel.ts";
import { searchBox } from "./search_box.ts";
import type { TimeWindow } from "./time_window.ts";
import { addTimelineKeys } from "./timeline_keys.ts";
import { windowControls } from "./window_controls.ts";

/** The charts of one device, and how to show that the recording went on. */
export interface DeviceView {
  readonly scope: Scope;
  /** What the charts share, for what stands beside them. */
  readonly chart: ChartContext;
  /** The part of the time axis that is shown. */
  readonly window: TimeWindow;
  /** Takes contents that begin with those shown so far; what was selected stays. */
  readonly update: (contents: DeviceContents) => void;
}

/**
 * The charts of one device on one time axis with one selection.
 *
 * They listen to keys while the focus is in `keysFrom`, and show tooltips in `tooltipIn`.
 */
export function deviceView(
  parent: HTMLElement,
  frames: Frames,
  contents: DeviceContents,
  keysFrom: HTMLElement = parent,
  tooltipIn: HTMLElement = document.body,
): DeviceView {
  const scope = new Scope();
  const chart = new ChartContext(scope, frames, contents, tooltipIn);
  const shown = new Scope();
  let kinds = "";
  const show = (): void => {
    if (kindsOfCharts(chart) !== kinds) {
      kinds = kindsOfCharts(chart);
      shown.dispose();
      showCharts(shown, parent, chart, keysFrom);
    }
  };
  show();
  scope.watch(show, chart.revision);
  scope.use(shown);
  return {
    scope,
    chart,
    window: chart.selection.window,
    update: (longer) => chart.update(longer),
  };
}

/** Which charts there is something for. */
function kindsOfCharts({ timeline, lanes }: ChartContext): string {
  return `${timeline.events.count > 0} ${lanes.length > 0}`;
}

function showCharts(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  keysFrom: HTMLElement,
): void {
  const hasMemory = chart.timeline.events.count > 0;
  showControls(scope, parent, chart, keysFrom);
  if (hasMemory) {
    const levels = section(scope, parent, "Memory over time", LEVELS_HINT);
    levelsView(scope, levels, chart);
    levelsLegend(scope, levels, chart);
    const map = section(scope, parent, "Segment map over time", MAP_HINT);
    colourSwitch(scope, map, chart);
    categoriesLegend(scope, map, chart.grouping.categories);
    mapView(scope, map, chart);
  }
  if (chart.lanes.length > 0) {
    const lanes = section(scope, parent, "Streams over time", LANES_HINT);
    idleSwitch(scope, lanes, chart);
    kindsLegend(scope, lanes, chart);
    lanesView(scope, lanes, chart);
  }
  selectedPanel(scope, section(scope, parent, "Selected", SELECTED_HINT), chart);
  if (hasMemory) {
    const moment = section(scope, parent, "Segments at one moment", MOMENT_HINT);
    momentControls(scope, moment, chart);
    momentView(scope, moment, chart);
  }
}

const LEVELS_HINT =
  "Wheel or drag to zoom, Shift and drag to measure, double click to show everything. " +
  "Click to choose the moment shown below.";
const MAP_HINT =
  "Each rectangle is a block from its allocation to its free. Hover over one to see its lines. " +
  "Blocks smaller than a pixel share it: a paler pixel is less full.";
const LANES_HINT =
  "Activity of each host thread and stream. For spans shorter than a pixel, " +
  "the height is their share of its time.";
const SELECTED_HINT =
  "Related items are highlighted in all charts: the launches that touched a block, " +
  "the blocks that a launch touched, the launches of a range.";
const MOMENT_HINT =
  "One bar for each segment, largest first, with its blocks and the free space between them.";

/** What belongs to all charts: search, the part of the time shown, the overview, the keys. */
function showControls(
  scope: Scope,
  parent: HTMLElement,
  chart: ChartContext,
  keysFrom: HTMLElement,
): void {
  const bar = element("section", "gpuviz-section gpuviz-section--controls");
  scope.append(parent, bar);
  const help = helpDialog(scope, bar);
  const search = searchBox(scope, bar, chart);
  windowControls(scope, bar, chart, help);
  minimap(scope, bar, chart);
  measuredPanel(scope, bar, chart);
  addTimelineKeys(scope, keysFrom, chart, { search, help });
}

function section(scope: Scope, parent: HTMLElement, title: string, hint: string): HTMLElement {
  const created = element("section", "gpuviz-section");
  created.append(element("h3", "gpuviz-section__title", title));
  created.append(element("p", "gpuviz-section__hint", hint));
  scope.append(parent, created);
  return created;
}
