import { Signal } from "../base/signal.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { NOTHING_LIT, type Lit, type Picked } from "../model/picked.ts";
import { TimeWindow, type TimeRange } from "./time_window.ts";

/** What the charts of one device have in common: the time shown, the cursor, what is selected. */
export class Selection {
  readonly window: TimeWindow;
  /** Where the pointer is on the time axis. */
  readonly cursorNs = new Signal<number | undefined>(undefined);
  /** The event after which the segment map at a moment is shown. */
  readonly momentRow: Signal<number>;
  /** The window that a reader measures. */
  readonly measured = new Signal<TimeRange | undefined>(undefined);
  readonly picked = new Signal<Picked | undefined>(undefined);
  /** What lights up with it. */
  readonly lit = new Signal<Lit>(NOTHING_LIT);
  readonly #litBy: (picked: Picked | undefined) => Lit;
  #peak: number;

  constructor(timeline: DeviceTimeline, litBy: (picked: Picked | undefined) => Lit) {
    this.window = new TimeWindow({ fromNs: 0, toNs: timeline.endNs });
    this.momentRow = new Signal(timeline.peak);
    this.#peak = timeline.peak;
    this.#litBy = litBy;
    this.picked.subscribe(() => {
      this.#light();
    });
  }

  /** Takes in that a timeline went on; the peak and the end are followed where they are shown. */
  follow({ endNs, peak }: DeviceTimeline): void {
    this.window.extend(endNs);
    if (this.momentRow.value === this.#peak) {
      this.momentRow.value = peak;
    }
    this.#peak = peak;
    if (this.picked.value !== undefined) {
      this.#light();
    }
  }

  #light(): void {
    this.lit.value = this.#litBy(this.picked.value);
  }
}
