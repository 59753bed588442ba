import type { DeviceTimeline } from "./device_timeline.ts";
import type { HostMemory } from "./host_memory.ts";
import type { Lanes } from "./lanes.ts";
import type { Names } from "./names.ts";
import type { Stacks } from "./stacks.ts";
import type { GpuActivities } from "./gpu_activities.ts";

/** What the charts of one device are drawn from; each of them goes on as the recording does. */
export interface DeviceContents {
  readonly device: number;
  readonly timeline: DeviceTimeline;
  /** Pinned memory, the same for every device. */
  readonly host: HostMemory;
  readonly gpu: GpuActivities;
  readonly lanes: Lanes;
  readonly stacks: Stacks;
  readonly names: Names;
}
