import { Signal } from "../base/signal.ts";
import { findBands } from "../model/bands.ts";
import { Descriptions } from "../model/description.ts";
import type { DeviceContents } from "../model/device_contents.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { findEventWaits, type EventWaits } from "../model/event_waits.ts";
import type { Lane } from "../model/lanes.ts";
import { Links } from "../model/links.ts";
import type { Names } from "../model/names.ts";
import type { Picked } from "../model/picked.ts";
import { pickedTimes } from "../model/picked_times.ts";
import type { RelatedContents } from "../model/related.ts";
import type { Stacks } from "../model/stacks.ts";
import type { Work } from "../model/work.ts";
import { WorkDescriptions } from "../model/work_description.ts";
import { Bands } from "./bands.ts";
import { Grouping } from "./colour_switch.ts";
import type { Frames } from "./frames.ts";
import { Selection } from "./selection.ts";
import type { TimeRange } from "./time_window.ts";
import { Tooltip } from "./tooltip.ts";

interface Derived {
  readonly lanes: readonly Lane[];
  readonly links: Links;
  readonly describe: Descriptions;
  readonly describeWork: WorkDescriptions;
  readonly bands: Bands;
  readonly waits: EventWaits;
}

/** What the charts of one device share; the contents may be replaced by longer ones. */
export class ChartContext implements RelatedContents {
  readonly frames: Frames;
  readonly tooltip: Tooltip;
  readonly selection: Selection;
  readonly grouping: Grouping;
  /** How often the contents were replaced. */
  readonly revision = new Signal(0);
  #contents: DeviceContents;
  #derived: Derived;

  constructor(frames: Frames, contents: DeviceContents, tooltipIn: HTMLElement) {
    this.frames = frames;
    this.tooltip = new Tooltip(tooltipIn);
    this.#contents = contents;
    this.#derived = derive(contents);
    this.grouping = new Grouping(contents);
    this.selection = new Selection(contents.timeline, (picked) => this.links.litBy(picked));
  }

  /** Shows contents that begin with those shown so far. */
  update(contents: DeviceContents): void {
    this.#contents = contents;
    this.#derived = derive(contents);
    this.grouping.update(contents);
    this.selection.follow(contents.timeline);
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

  get work(): Work {
    return this.#contents.work;
  }

  get stacks(): Stacks {
    return this.#contents.stacks;
  }

  get names(): Names {
    return this.#contents.names;
  }

  get lanes(): readonly Lane[] {
    return this.#derived.lanes;
  }

  get links(): Links {
    return this.#derived.links;
  }

  get describe(): Descriptions {
    return this.#derived.describe;
  }

  get describeWork(): WorkDescriptions {
    return this.#derived.describeWork;
  }

  get bands(): Bands {
    return this.#derived.bands;
  }

  get waits(): EventWaits {
    return this.#derived.waits;
  }

  timesOf(picked: Picked): TimeRange {
    return pickedTimes(picked, this.timeline, this.work);
  }

  dispose(): void {
    this.tooltip.dispose();
  }
}

function derive({ device, timeline, work, lanes, stacks, names }: DeviceContents): Derived {
  const describeWork = new WorkDescriptions(work, stacks, names);
  return {
    lanes: [...lanes.threads, ...lanes.ofDevice(device)],
    links: new Links(timeline, work),
    describe: new Descriptions(timeline, stacks, names),
    describeWork,
    bands: new Bands(findBands(work, timeline.endNs), describeWork),
    waits: findEventWaits(work),
  };
}
