import { countAtMost } from "../base/search.ts";
import { Signal } from "../base/signal.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { NOTHING_HIGHLIGHTED, type Highlighted, type Selected } from "../model/selected.ts";
import { TimeWindow, type TimeRange } from "./time_window.ts";

/** A span of time with a name. */
export interface KeptSpan extends TimeRange {
  readonly name: string;
}

/** The state of memory after an event, or before the first one. */
export interface State {
  /** The event; -1 before the first. */
  readonly row: number;
  readonly timeNs: number;
  /** For so long from `timeNs` on, no state has more allocated; 0 if there is only this one. */
  readonly withinNs: number;
}

/** Of a window, what is shown before and after it. */
const AROUND = 0.1;

/** What the charts of one device have in common: the time shown, the cursor, what is selected. */
export class Selection {
  /** Spans that a reader has named, by their begin. */
  readonly kept = new Signal<readonly KeptSpan[]>([]);
  /** The lanes above all others, as `nameOfLane` calls them. */
  readonly pinned = new Signal<readonly string[]>([]);
  readonly window: TimeWindow;
  /** Where the pointer is on the time axis. */
  readonly cursorNs = new Signal<number | undefined>(undefined);
  /** The event after which the segment map at a moment is shown. */
  readonly momentRow: Signal<number>;
  /** The span that a reader has selected, which the tables sum up. */
  readonly measured = new Signal<TimeRange | undefined>(undefined);
  /** The width of the memory chart's image in pixels, which the chart sets when it draws. */
  columns = 1000;
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
    this.measured.subscribe(() => this.#light());
  }

  /** The state that is read out: that at the cursor, else the moment shown. */
  shownState(timeline: DeviceTimeline): State {
    const { value: row } = this.momentRow;
    const { value: cursorNs } = this.cursorNs;
    return cursorNs === undefined
      ? { row, timeNs: timeline.events.timeNs[row] ?? 0, withinNs: 0 }
      : this.stateAt(timeline, cursorNs);
  }

  /** The state that the picture of memory shows at a time: of those in its column, the fullest. */
  stateAt(timeline: DeviceTimeline, timeNs: number): State {
    const { fromNs, toNs } = this.window.range.value;
    const share = (timeNs - fromNs) / (toNs - fromNs);
    const column = Math.min(Math.floor(share * this.columns), this.columns - 1);
    const endOf = (at: number): number => fromNs + ((toNs - fromNs) * at) / this.columns;
    const first = countAtMost(timeline.events.timeNs, endOf(column));
    const last = countAtMost(timeline.events.timeNs, endOf(column + 1), first);
    const earliest = timeline.events.initialCount - 1;
    if (first === last) {
      return { row: Math.max(first - 1, earliest), timeNs, withinNs: 0 };
    }
    const row = timeline.lines.allocated.largestRow(Math.max(first - 1, 0), last);
    const withinNs = endOf(column + 1) - endOf(column);
    return { row: Math.max(row, earliest), timeNs: endOf(column), withinNs };
  }

  /** The precision in which times are shown, in ns. */
  get resolutionNs(): number {
    const { fromNs, toNs } = this.window.range.value;
    return (toNs - fromNs) / 2000;
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
