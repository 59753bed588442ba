import { Scope } from "../base/scope.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import { ChartContext } from "./chart_context.ts";
import { colourSwitch, segmentsLegend } from "./colour_switch.ts";
import { actionButton, element } from "./dom.ts";
import { Drawer } from "./drawer.ts";
import type { Frames } from "./frames.ts";
import { helpDialog } from "./help.ts";
import { hostLevelsLegend } from "./host_levels_legend.ts";
import { hostLevelsView } from "./host_levels_view.ts";
import { kindsLegend } from "./kinds_legend.ts";
import { lanesView } from "./lanes_view.ts";
import { levelsLegend } from "./levels_legend.ts";
import { levelsView } from "./levels_view.ts";
import { mapView } from "./map_view.ts";
import { measuredPanel } from "./measured_panel.ts";
import { minimap } from "./minimap.ts";
import { momentControls } from "./moment_controls.ts";
import { momentView } from "./moment_view.ts";
import { Panes } from "./panes.ts";
import { ruler } from "./ruler.ts";
import { searchBox } from "./search_box.ts";
import { selectedPanel } from "./selected_panel.ts";
import type { TimeWindow } from "./time_window.ts";
import { addTimelineKeys } from "./timeline_keys.ts";
import { addTrack, LEAST_LOW_TRACK_PX, LEAST_TRACK_PX, once, type Track } from "./track.ts";
import { shownWindow, windowControls } from "./window_controls.ts";

/** The tracks and the drawer of one device, and how to show that the recording went on. */
export interface DeviceView {
  readonly scope: Scope;
  /** What the tracks share, for what stands beside them. */
  readonly chart: ChartContext;
  /** The part of the time axis that is shown. */
  readonly window: TimeWindow;
  readonly panes: Panes;
  readonly drawer: Drawer;
  /** Takes contents that begin with those shown so far; what was selected stays. */
  readonly update: (contents: DeviceContents) => void;
}

/** Where the parts of a view are. */
export interface Places {
  /** Has the tracks and the drawer. */
  readonly charts: HTMLElement;
  /** Has the search and the buttons; `charts` if omitted. */
  readonly controls?: HTMLElement;
  /** While the focus is in it, the view listens to keys; `charts` if omitted. */
  readonly keys?: HTMLElement;
  /** Has the tooltips; the page if omitted. */
  readonly tooltips?: HTMLElement;
}

/** Heights of the tracks, as shares of what there is. */
const MEMORY_SIZE = 176;
/** The streams may have more rows than room, and would leave none. */
const LEAST_MEMORY = { px: 96, most: "15.25%" };
const PINNED_SIZE = 80;
const BLOCKS_SIZE = 143;
const STREAMS_SIZES = { least: 70, most: 230 };
/** They scroll, so they get what the memory and nine rows of a table leave: some GPU streams. */
const MOST_LEAST_STREAMS = "85% - 374px";
const TRACKS = ["memory", "pinned", "blocks", "streams"];

/** The tracks of one device on one time axis with one selection, and a drawer with details. */
export function deviceView(
  places: Places,
  frames: Frames,
  contents: DeviceContents,
  isDrawerOpen = true,
): DeviceView {
  const { charts, controls = charts, keys = charts, tooltips = document.body } = places;
  const scope = new Scope();
  const chart = new ChartContext(scope, frames, contents, tooltips);
  const bar = element("div", "gpuviz-toolbar");
  scope.append(controls, bar);
  const help = helpDialog(scope, bar);
  const search = searchBox(scope, bar, [chart]);
  colourSwitch(scope, bar, chart);
  windowControls(scope, bar, chart, help);
  const overview = element("div", "gpuviz-overview");
  scope.append(charts, overview);
  minimap(scope, overview, chart);
  shownWindow(scope, overview, chart);
  const panes = new Panes(scope, charts);
  const axis = element("div", "gpuviz-ruler");
  panes.root.append(axis);
  ruler(scope, axis, chart);
  axis.append(element("p", "gpuviz-ruler__hint", "Drag selects · Ctrl+wheel zooms · ?"));
  addTracks(scope, panes, chart);
  const drawer = new Drawer(scope, panes, isDrawerOpen);
  const name = addPanels(scope, panes, drawer, chart);
  addTimelineKeys(scope, keys, chart, { search, help, name });
  return {
    scope,
    chart,
    window: chart.selection.window,
    panes,
    drawer,
    update: (longer) => chart.update(longer),
  };
}

/** Adds the tracks of a recording; those of a second one are each below that of the first. */
export function addTracks(scope: Scope, panes: Panes, chart: ChartContext, isSecond = false): void {
  const hasMemory = (): boolean => chart.timeline.events.count > 0;
  const track = (
    name: string,
    title: string,
    hint: string,
    size: number,
    isThere: () => boolean,
    show: (track: Track) => void,
    leastPx = 0,
  ): void => {
    const next = TRACKS[TRACKS.indexOf(name) + 1];
    addTrack(scope, panes, chart, {
      name: isSecond ? `${name}after` : name,
      title: chart.title === "" ? title : `${chart.title}: ${title.toLowerCase()}`,
      ...(isSecond && next !== undefined && { above: next }),
      ...{ hint, size, isThere, leastPx, show },
    });
  };
  track("memory", "Memory", MEMORY_HINT, MEMORY_SIZE, hasMemory, ({ body, side, setSize }) => {
    setSize(MEMORY_SIZE, LEAST_MEMORY.px, LEAST_MEMORY.most);
    levelsView(scope, body, chart);
    levelsLegend(scope, side, chart);
  });
  const hasPinned = (): boolean => chart.host.isRecorded;
  const showPinned = ({ body, side }: Track): void => {
    hostLevelsView(scope, body, chart);
    hostLevelsLegend(scope, side, chart);
  };
  track("pinned", "Pinned", PINNED_HINT, PINNED_SIZE, hasPinned, showPinned, LEAST_LOW_TRACK_PX);
  const showBlocks = ({ body, side }: Track): void => {
    segmentsLegend(side);
    mapView(scope, body, chart);
  };
  track("blocks", "Blocks", BLOCKS_HINT, BLOCKS_SIZE, hasMemory, showBlocks, LEAST_TRACK_PX);
  const hasLanes = (): boolean => chart.lanes.length > 0;
  track("streams", "Streams", STREAMS_HINT, 0, hasLanes, ({ body, side, setSize }) => {
    kindsLegend(scope, side, chart);
    const { least, most } = STREAMS_SIZES;
    lanesView(scope, body, chart, (px, leastPx) => {
      // Two recordings share the height.
      const isAlone = chart.title === "";
      const leastHere = isAlone ? leastPx : Math.min(leastPx, least);
      setSize(Math.min(Math.max(px, least), most), leastHere, MOST_LEAST_STREAMS);
    });
  });
}

const MEMORY_HINT =
  "Bytes on the device over time. Click to choose the moment that the details show.";
const PINNED_HINT =
  "Bytes of pinned host memory over time: held by the program, freed but waiting for copies, and " +
  "cached.";
const BLOCKS_HINT =
  "Each rectangle is a block from its allocation to its free, at its address; segments are stacked " +
  "without gaps. Blocks smaller than a pixel share it: a paler pixel is less full.";
const STREAMS_HINT =
  "Activity of each host thread and stream, and when and why streams were idle. For spans shorter " +
  "than a pixel, the height is their share of its time.";

/** The panels that need nothing but the selection; returns what leads to the name of a span. */
function addPanels(scope: Scope, panes: Panes, drawer: Drawer, chart: ChartContext): () => void {
  const { selection } = chart;
  const name = measuredPanel(scope, drawer.top, chart);
  const panel = drawer.add(scope, "selection", "Selection");
  const selected = selectedPanel(scope, panel, chart);
  scope.watch(() => {
    // The panel says the same, and the tooltip would cover it.
    chart.tooltip.hide();
    if (selection.selected.value !== undefined) {
      drawer.open("selection");
    }
  }, selection.selected);
  scope.watch(() => {
    if (selection.measured.value !== undefined) {
      drawer.open(drawer.shown.value);
    }
  }, selection.measured);
  chart.showSelected = () => {
    drawer.open("selection");
    panes.root.scrollIntoView({ block: "nearest" });
    selected.focus({ preventScroll: true });
  };
  const moment = drawer.add(scope, "moment", "At this moment");
  const hasMemory = (): boolean => chart.timeline.events.count > 0;
  drawer.offer("moment", false);
  once(scope, chart, hasMemory, moment, () => {
    drawer.offer("moment", true);
    momentControls(scope, moment, chart);
    momentView(scope, moment, chart);
  });
  return name;
}
