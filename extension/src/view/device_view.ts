import { Scope } from "../base/scope.ts";
import { Signal } from "../base/signal.ts";
import { groupBlocks, memoized, type Categories } from "../model/categories.ts";
import { Descriptions } from "../model/description.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import type { Names } from "../model/names.ts";
import type { Stacks } from "../model/stacks.ts";
import { categoriesLegend } from "./categories_legend.ts";
import { element } from "./dom.ts";
import type { Frames } from "./frames.ts";
import { levelsLegend } from "./levels_legend.ts";
import { levelsView } from "./levels_view.ts";
import { mapView } from "./map_view.ts";
import { momentControls } from "./moment_controls.ts";
import { momentView } from "./moment_view.ts";
import { Selection } from "./selection.ts";
import { Tooltip } from "./tooltip.ts";
import { windowControls } from "./window_controls.ts";

/** The charts of one device on one time axis with one selection. */
export function deviceView(
  parent: HTMLElement,
  frames: Frames,
  timeline: DeviceTimeline,
  stacks: Stacks,
  names: Names,
): Scope {
  const scope = new Scope();
  const selection = new Selection(timeline);
  const describe = new Descriptions(timeline, stacks, names);
  const tooltip = new Tooltip(document.body);
  const grouping = groupingOf(timeline, stacks, names);
  const categories = new Signal(grouping.site());
  scope.defer(() => {
    tooltip.dispose();
  });
  const section = (title: string, hint: string): HTMLElement => {
    const created = element("section", "gpuviz-section");
    created.append(element("h3", "gpuviz-section__title", title));
    created.append(element("p", "gpuviz-section__hint", hint));
    parent.append(created);
    scope.defer(() => {
      created.remove();
    });
    return created;
  };
  const add = (disposable: { dispose: () => void }): void => {
    scope.defer(() => {
      disposable.dispose();
    });
  };

  const levels = section(
    "Levels over time",
    "Wheel or drag to zoom, Shift and drag to move, double click for all. A click moves the moment shown below.",
  );
  add(windowControls(levels, selection));
  add(levelsView(levels, frames, timeline, selection).scope);
  scope.defer(levelsLegend(levels, timeline, selection));

  const map = section(
    "Segment map over time",
    "Each rectangle is a block from its allocation to its free. Point at one for its lines. Blocks too small or short for a pixel are drawn as one pixel.",
  );
  add(colourSwitch(map, categories, grouping));
  scope.defer(categoriesLegend(map, categories));
  add(
    mapView(map, frames, timeline, selection, categories, describe, tooltip)
      .scope,
  );

  const moment = section(
    "Segments at one moment",
    "One bar for each segment, largest first, with its blocks and the free space between them.",
  );
  add(momentControls(moment, timeline, selection));
  add(
    momentView(
      moment,
      frames,
      timeline,
      selection,
      categories,
      describe,
      tooltip,
    ).scope,
  );
  return scope;
}

interface Grouping {
  readonly site: () => Categories;
  readonly stream: () => Categories;
}

function groupingOf(
  timeline: DeviceTimeline,
  stacks: Stacks,
  names: Names,
): Grouping {
  const { events, blocks, peak } = timeline;
  const siteOf = memoized((stack) => stacks.siteOf(stack));
  const streamOf = memoized(names.stream);
  return {
    site: () =>
      groupBlocks(
        events,
        blocks,
        peak,
        (row) => siteOf(events.stack[row] ?? 0),
        "other lines",
      ),
    stream: () =>
      groupBlocks(
        events,
        blocks,
        peak,
        (row) => streamOf(events.stream[row] ?? 0),
        "other streams",
      ),
  };
}

function colourSwitch(
  parent: HTMLElement,
  categories: Signal<Categories>,
  grouping: Grouping,
): Scope {
  const scope = new Scope();
  const label = element("label", "gpuviz-controls", "Colour by ");
  const choice = element("select", "gpuviz-select");
  choice.append(
    new Option("line that allocated", "site"),
    new Option("stream", "stream"),
  );
  label.append(choice);
  parent.append(label);
  scope.listen(choice, "change", () => {
    categories.value =
      choice.value === "stream" ? grouping.stream() : grouping.site();
  });
  return scope;
}
