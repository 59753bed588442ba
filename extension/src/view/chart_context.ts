import type { Signal } from "../base/signal.ts";
import type { Categories } from "../model/categories.ts";
import type { Descriptions } from "../model/description.ts";
import type { EventWaits } from "../model/event_waits.ts";
import type { Lane } from "../model/lanes.ts";
import type { Picked } from "../model/picked.ts";
import type { RelatedContents } from "../model/related.ts";
import type { Bands } from "./bands.ts";
import type { Frames } from "./frames.ts";
import type { Selection } from "./selection.ts";
import type { TimeRange } from "./time_window.ts";
import type { Tooltip } from "./tooltip.ts";

/** What the charts of one device share. */
export interface ChartContext extends RelatedContents {
  readonly frames: Frames;
  readonly selection: Selection;
  readonly categories: Signal<Categories>;
  readonly describe: Descriptions;
  readonly bands: Bands;
  readonly waits: EventWaits;
  readonly lanes: readonly Lane[];
  readonly pickedTimes: (picked: Picked) => TimeRange;
  readonly tooltip: Tooltip;
}
