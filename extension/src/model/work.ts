import type { ArrowTable } from "../wire/arrow.ts";
import type { RecordingFile } from "../wire/recording_file.ts";
import { Activities } from "./activities.ts";
import { ApiCalls } from "./api_calls.ts";
import { DeviceMemory } from "./device_memory.ts";
import { LaunchBlocks } from "./launch_blocks.ts";
import { LaunchConfigurations } from "./launch_configurations.ts";
import { MemoryOperations } from "./memory_operations.ts";
import { Overheads } from "./overheads.ts";
import { Ranges } from "./ranges.ts";
import { Synchronizations } from "./synchronizations.ts";
import { Texts } from "./texts.ts";

/** What the GPUs and the host's threads did. */
export class Work {
  readonly activities = new Activities();
  readonly apiCalls = new ApiCalls();
  readonly synchronizations = new Synchronizations();
  readonly ranges = new Ranges();
  readonly launchBlocks = new LaunchBlocks();
  readonly configurations = new LaunchConfigurations();
  readonly overheads = new Overheads();
  readonly memoryOperations = new MemoryOperations();
  readonly deviceMemory = new DeviceMemory();
  readonly strings = new Texts("text");
  readonly threads = new Texts("name");

  /** Takes more rows of a table; tables that say nothing about work are passed over. */
  append(table: ArrowTable): void {
    this.#tables[table.name]?.append(table);
  }

  /** When the last activity or call ends. */
  get endNs(): number {
    const latest = (times: Float64Array<ArrayBuffer>): number =>
      times.reduce((high, time) => Math.max(high, time), 0);
    return Math.max(latest(this.activities.toNs), latest(this.apiCalls.toNs));
  }

  readonly #tables: Readonly<Record<string, { append: (table: ArrowTable) => void }>> = {
    activities: this.activities,
    api_calls: this.apiCalls,
    synchronizations: this.synchronizations,
    ranges: this.ranges,
    launch_blocks: this.launchBlocks,
    launch_configurations: this.configurations,
    overheads: this.overheads,
    memory_operations: this.memoryOperations,
    device_memory: this.deviceMemory,
    strings: this.strings,
    threads: this.threads,
  };

  static readonly tableNames = [
    "strings",
    "threads",
    "launch_configurations",
    "activities",
    "api_calls",
    "synchronizations",
    "ranges",
    "launch_blocks",
    "overheads",
    "memory_operations",
    "device_memory",
  ] as const;
}

export async function readWork(file: RecordingFile): Promise<Work> {
  const work = new Work();
  for (const table of await Promise.all(Work.tableNames.map((name) => file.tableIfAny(name)))) {
    work.append(table);
  }
  return work;
}
