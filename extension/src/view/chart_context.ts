import { Signal } from "../base/signal.ts";
import { findBands } from "../model/bands.ts";
import { Descriptions } from "../model/description.ts";
import type { UsedMemory } from "../model/device_memory.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { findEventWaits, type EventWaits } from "../model/event_waits.ts";
import { IdleGaps } from "../model/idle_gaps.ts";
import type { Lane, Lanes } from "../model/lanes.ts";
import { Links } from "../model/links.ts";
import { findMarks, type Mark } from "../model/marks.ts";
import type { Names } from "../model/names.ts";
import type { Picked } from "../model/picked.ts";
import { pickedTimes } from "../model/picked_times.ts";
import type { RelatedContents } from "../model/related.ts";
import type { Stacks } from "../model/stacks.ts";
import type { Work } from "../model/work.ts";
import { WorkDescriptions } from "../model/work_description.ts";
import { Bands } from "./bands.ts";
import { Grouping } from "./colour_switch.ts";
import { element } from "./dom.ts";
import type { Frames } from "./frames.ts";
import { Selection } from "./selection.ts";
import type { TimeRange } from "./time_window.ts";
import { Tooltip } from "./tooltip.ts";

/** What the charts of one device are drawn from. */
export interface DeviceContents {
  readonly device: number;
  readonly timeline: DeviceTimeline;
  readonly work: Work;
  readonly lanes: Lanes;
  readonly stacks: Stacks;
  readonly names: Names;
}

interface Derived {
  readonly lanes: readonly Lane[];
  readonly links: Links;
  readonly describe: Descriptions;
  readonly describeWork: WorkDescriptions;
  readonly bands: Bands;
  readonly waits: EventWaits;
  readonly marks: readonly Mark[];
}

/** What the charts of one device share; the contents may be replaced by longer ones. */
export class ChartContext implements RelatedContents {
  readonly frames: Frames;
  readonly tooltip: Tooltip;
  readonly selection: Selection;
  readonly grouping: Grouping;
  /** How often the contents were replaced. */
  readonly revision = new Signal(0);
  readonly showsIdle = new Signal(false);
  /** Whether the levels include what all processes use of the device. */
  readonly showsUsed = new Signal(false);
  #idle: IdleGaps | undefined;
  /** Brings the keyboard to what is selected. */
  focusSelected: () => void = () => undefined;
  readonly #spoken = element("div", "gpuviz-unseen");
  #contents: DeviceContents;
  #derived: Derived;

  constructor(frames: Frames, contents: DeviceContents, tooltipIn: HTMLElement) {
    const { timeline, stacks, names } = contents;
    this.frames = frames;
    this.tooltip = new Tooltip(tooltipIn);
    this.#spoken.setAttribute("role", "status");
    tooltipIn.append(this.#spoken);
    this.#contents = contents;
    this.#derived = derive(contents);
    this.grouping = new Grouping(timeline, stacks, names);
    this.selection = new Selection(timeline, (picked) => this.links.litBy(picked));
  }

  /** Shows contents that begin with those shown so far. */
  update(contents: DeviceContents): void {
    const before = this.timeline;
    this.#contents = contents;
    this.#derived = derive(contents);
    this.#idle = undefined;
    this.grouping.update(contents.timeline, contents.stacks, contents.names);
    this.selection.follow(before, contents.timeline);
    this.revision.value += 1;
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

  get marks(): readonly Mark[] {
    return this.#derived.marks;
  }

  get used(): UsedMemory | undefined {
    return this.work.deviceMemory.ofDevice(this.device);
  }

  get waits(): EventWaits {
    return this.#derived.waits;
  }

  /** When the device and each of its streams had nothing to do. */
  get idle(): IdleGaps {
    this.#idle ??= new IdleGaps(this.lanes, this.work);
    return this.#idle;
  }

  timesOf(picked: Picked): TimeRange {
    return pickedTimes(picked, this.timeline, this.work);
  }

  /** Tells a screen reader what has changed. */
  say(text: string): void {
    this.#spoken.textContent = text;
  }

  dispose(): void {
    this.tooltip.dispose();
    this.#spoken.remove();
  }
}

function derive({ device, timeline, work, lanes, stacks, names }: DeviceContents): Derived {
  const memory = work.memoryOperations.laneOf(device);
  const describeWork = new WorkDescriptions(work, stacks, names);
  return {
    lanes: [...lanes.threads, ...(memory === undefined ? [] : [memory]), ...lanes.ofDevice(device)],
    links: new Links(timeline, work),
    describe: new Descriptions(timeline, stacks, names),
    describeWork,
    bands: new Bands(findBands(work, timeline.endNs), describeWork),
    waits: findEventWaits(work),
    marks: findMarks(timeline),
  };
}
