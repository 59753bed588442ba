import { Signal } from "../base/signal.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import { TimeWindow } from "./time_window.ts";

/** What the charts of one device have in common: the time shown, the cursor, the moment. */
export class Selection {
  readonly window: TimeWindow;
  /** Where the pointer is on the time axis. */
  readonly cursorNs = new Signal<number | undefined>(undefined);
  /** The event after which the segment map at a moment is shown. */
  readonly momentRow: Signal<number>;

  constructor(timeline: DeviceTimeline) {
    this.window = new TimeWindow({ fromNs: 0, toNs: timeline.endNs });
    this.momentRow = new Signal(timeline.peak);
  }
}
