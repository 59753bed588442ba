import type { Scale } from "../base/scale.ts";
import type { Scope } from "../base/scope.ts";
import type { Conclusion } from "../model/conclusions.ts";
import { Signal } from "../base/signal.ts";
import { Descriptions } from "../model/description.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import type { UsedMemory } from "../model/device_memory.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import type { HostMemory } from "../model/host_memory.ts";
import type { IdleLane } from "../model/idle_gaps.ts";
import type { Lane } from "../model/lane.ts";
import { Links } from "../model/links.ts";
import type { Window } from "../model/grouping.ts";
import { lineRows, type LineRow } from "../model/line_rows.ts";
import { Divisions } from "../model/divisions.ts";
import type { Mark } from "../model/marks.ts";
import type { Names } from "../model/names.ts";
import type { Selected } from "../model/selected.ts";
import { groupedLanes } from "../model/grouped_lanes.ts";
import { wholeOf } from "../model/whole_time.ts";
import { selectedTimes } from "../model/selected_times.ts";
import type { RelatedContents } from "../model/related.ts";
import type { Stacks } from "../model/stacks.ts";
import type { GpuActivities } from "../model/gpu_activities.ts";
import { GpuDescriptions } from "../model/gpu_description.ts";
import { Bands } from "./bands.ts";
import { Grouping } from "./grouping.ts";
import { element } from "./dom.ts";
import type { Frames } from "./frames.ts";
import type { Drawing } from "./plot.ts";
import { Selection } from "./selection.ts";
import type { ShownLevel } from "./step_lines.ts";
import type { TimeRange } from "./time_window.ts";
import { Tooltip } from "./tooltip.ts";

/** What is derived from contents and goes on as they do. */
class Derived {
  readonly links: Links;
  readonly describe: Descriptions;
  readonly describeGpu: GpuDescriptions;
  readonly divisions: Divisions;

  constructor(contents: DeviceContents) {
    const { device, timeline, gpu, stacks, names } = contents;
    this.links = new Links(contents);
    this.describe = new Descriptions(timeline, stacks, names);
    this.describeGpu = new GpuDescriptions(gpu, stacks, names);
    const isOwn = (thread: number): boolean => gpu.processes.isThreadOf(thread, device);
    this.divisions = new Divisions(gpu.ranges, isOwn);
  }
}

/** A hazard that the streams show as an arrow. */
export interface HazardArrow {
  readonly said: Conclusion;
  readonly show: () => void;
}

/** What the charts of one device share; the contents may be replaced by longer ones. */
export class ChartContext implements RelatedContents {
  readonly frames: Frames;
  readonly tooltip: Tooltip;
  readonly selection: Selection;
  readonly grouping: Grouping;
  /** How often the contents were replaced. */
  readonly revision = new Signal(0);
  /** The levels that are drawn beside what is allocated and reserved. */
  readonly shownLevels = new Signal<ReadonlySet<ShownLevel>>(new Set(["active"]));
  #marks: readonly Mark[] | undefined;
  #lines: (readonly [window: Window, rows: readonly LineRow[]])[] = [];
  /** Notebook cells, or the outermost ranges. */
  readonly bands = new Bands(
    () => this.#derived.divisions.row,
    (row, span) => this.describeGpu.shortName(row, span),
  );
  /** What rows of tables must contain. */
  readonly filter = new Signal("");
  /** The names of the rows of tables that a finding leads to; these come first. */
  readonly marked = new Signal<readonly string[]>([]);
  /** Operations that nothing orders, and what an arrow between them shows. */
  readonly hazards = new Signal<readonly HazardArrow[]>([]);
  /** Shows the tracks and what is told about the selection, and brings the keyboard there. */
  showSelected: () => void = () => undefined;
  readonly #spoken = element("div", "gpuviz-unseen", { role: "status" });
  #contents: DeviceContents;
  #derived: Derived;

  /** Which of two recordings it shows; empty where there is one. */
  readonly title: string;
  /** The charts of the other recording, with the same scales. */
  beside: ChartContext | undefined;
  /** Draws where the axis goes on after the end of the recording. */
  drawEnd: ((drawing: Drawing, time: Scale) => void) | undefined;

  constructor(
    scope: Scope,
    frames: Frames,
    contents: DeviceContents,
    tooltipIn: HTMLElement,
    title = "",
  ) {
    this.title = title;
    this.frames = frames;
    this.tooltip = new Tooltip(scope, tooltipIn);
    scope.append(tooltipIn, this.#spoken);
    this.#contents = contents;
    this.#derived = new Derived(contents);
    this.grouping = new Grouping(contents);
    this.selection = new Selection(contents.timeline, wholeOf(contents), (selected) =>
      this.links.highlightedBy(selected),
    );
  }

  /** Shows contents that begin with those shown so far. */
  update(contents: DeviceContents): void {
    if (contents === this.#contents) {
      this.#derived.divisions.extend();
    } else {
      this.#contents = contents;
      this.#derived = new Derived(contents);
    }
    this.#marks = undefined;
    this.#lines = [];
    this.grouping.update(contents);
    this.selection.follow(contents.timeline, wholeOf(contents));
    this.revision.value += 1;
  }

  get contents(): DeviceContents {
    return this.#contents;
  }

  get device(): number {
    return this.#contents.device;
  }

  get timeline(): DeviceTimeline {
    return this.#contents.timeline;
  }

  get host(): HostMemory {
    return this.#contents.host;
  }

  /** The time of the cursor, else of the moment shown. */
  get shownNs(): number {
    const { cursorNs, momentRow } = this.selection;
    return cursorNs.value ?? this.timeline.events.timeNs[momentRow.value] ?? 0;
  }

  get gpu(): GpuActivities {
    return this.#contents.gpu;
  }

  get stacks(): Stacks {
    return this.#contents.stacks;
  }

  get names(): Names {
    return this.#contents.names;
  }

  get lanes(): readonly Lane[] {
    return groupedLanes(this.#contents);
  }

  /** The lanes of the device's streams. */
  get ownStreams(): readonly Lane[] {
    return this.#contents.lanes.ofDevice(this.device);
  }

  get links(): Links {
    return this.#derived.links;
  }

  get describe(): Descriptions {
    return this.#derived.describe;
  }

  get describeGpu(): GpuDescriptions {
    return this.#derived.describeGpu;
  }

  get marks(): readonly Mark[] {
    this.#marks ??= this.gpu.memoryMarks.ofDevice(this.device, this.timeline);
    return this.#marks;
  }

  /** What each line of the program costs in a window; the last two answers are kept. */
  linesIn(window: Window): readonly LineRow[] {
    const isOther = ([of]: readonly [Window, unknown]): boolean => of !== window;
    const known = this.#lines.find((each) => !isOther(each));
    const rows = known?.[1] ?? lineRows(this.#contents, window);
    this.#lines = [[window, rows] as const, ...this.#lines.filter(isOther)].slice(0, 2);
    return rows;
  }

  get used(): UsedMemory | undefined {
    return this.gpu.deviceMemory.ofDevice(this.device);
  }

  /** When a stream had nothing to do, or all of the device. */
  idleOf(stream = 0): IdleLane | undefined {
    const device = stream === 0 ? this.device : this.#contents.lanes.deviceOf(stream);
    return device === undefined ? undefined : this.gpu.idleGaps.of(device, stream);
  }

  timesOf(selected: Selected): TimeRange {
    return selectedTimes(selected, this.timeline, this.gpu);
  }

  /** Tells a screen reader what has changed. */
  say(text: string): void {
    this.#spoken.textContent = text;
  }
}
