import type { ArrowTable } from "../wire/arrow.ts";
import { AccessedBlocks, Activities, LaunchBlocks } from "./activities.ts";
import { BlockCategories } from "./block_categories.ts";
import { DeviceMemory } from "./device_memory.ts";
import { FreeChanges } from "./free_levels.ts";
import { ApiCalls, HostWaits, Overheads, PeerCopies, StreamWaits } from "./host_calls.ts";
import { HostSamples } from "./host_samples.ts";
import { HostWork } from "./host_work.ts";
import { IdleGaps } from "./idle_gaps.ts";
import { LaunchConfigurations } from "./launch_configurations.ts";
import { MemoryOperations } from "./memory_operations.ts";
import { MemoryMarks } from "./marks.ts";
import { RecordedNames } from "./names.ts";
import { Processes } from "./processes.ts";
import { Ranges } from "./ranges.ts";
import { Texts } from "./texts.ts";
import { Unseen } from "./unseen.ts";

interface Appendable {
  append(table: ArrowTable): void;
  reserve?(rows: number): void;
}

/** What the GPUs and the host's threads did. */
export class GpuActivities {
  readonly activities = new Activities();
  readonly apiCalls = new ApiCalls();
  readonly ranges = new Ranges();
  readonly launchBlocks = new LaunchBlocks();
  readonly accessedBlocks = new AccessedBlocks();
  readonly memoryMarks = new MemoryMarks();
  readonly freeChanges = new FreeChanges();
  readonly blockCategories = new BlockCategories();
  readonly names = new RecordedNames();
  readonly configurations = new LaunchConfigurations();
  readonly overheads = new Overheads();
  readonly memoryOperations = new MemoryOperations();
  readonly deviceMemory = new DeviceMemory();
  readonly hostWaits = new HostWaits();
  readonly idleGaps = new IdleGaps();
  readonly hostSamples = new HostSamples();
  readonly hostWork = new HostWork();
  readonly unseen = new Unseen();
  readonly streamWaits = new StreamWaits();
  readonly peerCopies = new PeerCopies();
  readonly processes = new Processes();
  /** Whether a file was read that has no derived tables: why nothing ran is unknown. */
  lacksDerived = false;
  /** The window of a longer recording that this is; undefined if it is whole. */
  bounds: { readonly fromNs: number; readonly toNs: number } | undefined;
  readonly strings = new Texts("text");
  readonly threads = new Texts("name");
  /** When the last activity or call ends. */
  endNs = 0;
  /** The devices that there are activities of. */
  readonly devices = new Set<number>();

  /** Takes more rows of a table; other tables are passed over. */
  append(table: ArrowTable): void {
    const { activities, apiCalls } = this;
    const before = [activities.count, apiCalls.count] as const;
    this.#tables[table.name]?.append(table);
    for (let row = before[0]; row < activities.count; row += 1) {
      this.endNs = Math.max(this.endNs, activities.toNs[row] ?? 0);
      this.devices.add(activities.device[row] ?? 0);
    }
    for (let row = before[1]; row < apiCalls.count; row += 1) {
      this.endNs = Math.max(this.endNs, apiCalls.toNs[row] ?? 0);
    }
  }

  /** What a reader calls a kernel, by the id of its name. */
  kernelName(id: number): string {
    return this.names.kernel(id) || this.strings.get(id) || "kernel";
  }

  /** Makes room for rows of a table that will come. */
  reserve(table: string, rows: number): void {
    this.#tables[table]?.reserve?.(rows);
  }

  readonly #tables: Readonly<Record<string, Appendable>> = {
    activities: this.activities,
    api_calls: this.apiCalls,
    ranges: this.ranges,
    phases: this.ranges,
    launch_blocks: this.launchBlocks,
    accessed_blocks: this.accessedBlocks,
    memory_marks: this.memoryMarks,
    free_levels: this.freeChanges,
    categories: this.blockCategories,
    names: this.names,
    held_blocks: this.names,
    repeated_calls: this.apiCalls.repeated,
    launch_configurations: this.configurations,
    overheads: this.overheads,
    memory_operations: this.memoryOperations,
    device_memory: this.deviceMemory,
    host_waits: this.hostWaits,
    idle_gaps: this.idleGaps,
    host_samples: this.hostSamples,
    sampled_work: this.hostSamples.work,
    host_work: this.hostWork,
    unseen_spans: this.unseen,
    stream_waits: this.streamWaits,
    peer_copies: this.peerCopies,
    strings: this.strings,
    threads: this.threads,
    processes: this.processes,
  };

  /** The tables that are taken. */
  readonly tableNames: readonly string[] = Object.keys(this.#tables);
}
