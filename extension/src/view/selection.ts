import { Signal } from "../base/signal.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { NOTHING_HIGHLIGHTED, type Highlighted, type Selected } from "../model/selected.ts";
import { TimeWindow, type TimeRange } from "./time_window.ts";

/** A span of time with a name. */
export interface KeptSpan extends TimeRange {
  readonly name: string;
}

/** Of a window, what is shown before and after it. */
const AROUND = 0.1;

/** What the charts of one device have in common: the time shown, the cursor, what is selected. */
export class Selection {
  /** Spans that a reader has named, by their begin. */
  readonly kept = new Signal<readonly KeptSpan[]>([]);
  readonly window: TimeWindow;
  /** Where the pointer is on the time axis. */
  readonly cursorNs = new Signal<number | undefined>(undefined);
  /** The event after which the segment map at a moment is shown. */
  readonly momentRow: Signal<number>;
  /** The span that a reader has selected, which the tables sum up. */
  readonly measured = new Signal<TimeRange | undefined>(undefined);
  readonly selected = new Signal<Selected | undefined>(undefined);
  /** What was selected before, the latest last. */
  readonly #before: Selected[] = [];
  #last: Selected | undefined;
  /** What lights up with it. */
  readonly highlighted = new Signal<Highlighted>(NOTHING_HIGHLIGHTED);
  readonly #highlightedBy: (selected: Selected | undefined) => Highlighted;
  #peak: number;

  constructor(
    timeline: DeviceTimeline,
    whole: TimeRange,
    highlightedBy: (selected: Selected | undefined) => Highlighted,
  ) {
    this.window = new TimeWindow(whole);
    this.momentRow = new Signal(timeline.peak);
    this.#peak = timeline.peak;
    this.#highlightedBy = highlightedBy;
    this.selected.subscribe(() => {
      if (this.#last !== undefined) {
        this.#before.push(this.#last);
      }
      this.#last = this.selected.value;
      this.#light();
    });
  }

  /** The event whose state is read out: that at the cursor, else the moment shown. */
  shownRow(timeline: DeviceTimeline): number {
    const { value: timeNs } = this.cursorNs;
    return timeNs === undefined ? this.momentRow.value : timeline.rowAt(timeNs);
  }

  get canGoBack(): boolean {
    return this.#before.length > 0;
  }

  /** Selects what was selected before. */
  back(): void {
    const before = this.#before.pop();
    if (before !== undefined) {
      this.#last = undefined;
      this.selected.value = before;
    }
  }

  /** Measures what is selected, or without it the time shown. */
  measure(timesOf: (selected: Selected) => TimeRange): void {
    const { value: selected } = this.selected;
    const { fromNs, toNs } = selected === undefined ? this.window.range.value : timesOf(selected);
    this.measured.value = { fromNs: Math.round(fromNs), toNs: Math.round(toNs) };
  }

  /** Measures a window, and shows it with a little of what is before and after it. */
  showMeasured(window: TimeRange): void {
    const aroundNs = AROUND * (window.toNs - window.fromNs);
    this.window.show(window.fromNs - aroundNs, window.toNs + aroundNs);
    this.selected.value = undefined;
    this.measured.value = window;
  }

  /** Keeps the selected span under a name, in place of the one that it had. */
  keep(name: string): void {
    const { value: span } = this.measured;
    if (span !== undefined) {
      const others = this.kept.value.filter((each) => !isSame(each, span));
      this.kept.value = [...others, { ...span, name }].sort(
        (left, right) => left.fromNs - right.fromNs,
      );
    }
  }

  /** The kept span that is selected. */
  get keptSpan(): KeptSpan | undefined {
    const { value: span } = this.measured;
    return span && this.kept.value.find((each) => isSame(each, span));
  }

  /** Takes in that a timeline went on; the peak and the end are followed where they are shown. */
  follow({ peak }: DeviceTimeline, whole: TimeRange): void {
    this.window.extend(whole);
    if (this.momentRow.value === this.#peak) {
      this.momentRow.value = peak;
    }
    this.#peak = peak;
    if (this.selected.value !== undefined) {
      this.#light();
    }
  }

  #light(): void {
    this.highlighted.value = this.#highlightedBy(this.selected.value);
  }
}

function isSame(left: TimeRange, right: TimeRange): boolean {
  return left.fromNs === right.fromNs && left.toNs === right.toNs;
}
