import type { Signal } from "../base/signal.ts";
import type { Categories } from "../model/categories.ts";
import type { Descriptions } from "../model/description.ts";
import type { DeviceTimeline } from "../model/device_timeline.ts";
import type { Lane } from "../model/lanes.ts";
import type { Work } from "../model/work.ts";
import type { WorkDescriptions } from "../model/work_description.ts";
import type { Frames } from "./frames.ts";
import type { Selection } from "./selection.ts";
import type { Tooltip } from "./tooltip.ts";

/** What the charts of one device share. */
export interface ChartContext {
  readonly frames: Frames;
  readonly timeline: DeviceTimeline;
  readonly selection: Selection;
  readonly categories: Signal<Categories>;
  readonly describe: Descriptions;
  readonly work: Work;
  readonly lanes: readonly Lane[];
  readonly describeWork: WorkDescriptions;
  readonly tooltip: Tooltip;
}
