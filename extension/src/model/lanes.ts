import { GrowingIndices } from "../base/growing.ts";
import { spanKindOf } from "./span_kinds.ts";
import { SpanStack, type Spans } from "./span_stack.ts";
import { ThreadLanes } from "./thread_lanes.ts";
import type { GpuActivities } from "./gpu_activities.ts";

/** A stream's or a host thread's spans. */
export interface Lane {
  readonly title: string;
  /** The id of its stream, undefined for a thread. */
  readonly stream: number | undefined;
  readonly stack: Pick<SpanStack, "rows" | "count">;
  /** The thread's id, undefined for a stream. */
  readonly thread?: number;
  /** Whether it has only samples of the host's code: nothing for a GPU, and no range. */
  readonly isQuiet?: boolean;
  /** The device of a stream. */
  readonly device?: number | undefined;
  /** What the process and the device are called, where there are several. */
  readonly group?: string;
}

export interface StreamLane extends Lane {
  readonly device: number;
  readonly stream: number;
  readonly stack: SpanStack;
}

/** The lanes of a recording: one for each device and stream, one for each host thread. */
export class Lanes {
  readonly #gpu: GpuActivities;
  readonly #streams = new Map<number, StreamLane>();
  #threads: ThreadLanes;
  #taken = 0;

  constructor(gpu: GpuActivities) {
    this.#gpu = gpu;
    this.#threads = new ThreadLanes(gpu);
  }

  /** Takes in what was added to the tables; a range that is still open has no end. */
  extend(): void {
    this.#extendStreams();
    this.#threads = this.#threads.extended();
  }

  /** The lanes of a device's streams, in the order of their ids. */
  ofDevice(device: number): StreamLane[] {
    return [...this.#streams.values()]
      .filter((lane) => lane.device === device)
      .sort((left, right) => left.stream - right.stream);
  }

  /** The device of a stream, if its id is that of no other, as in merged recordings. */
  deviceOf(stream: number): number | undefined {
    for (const lane of this.#streams.values()) {
      if (lane.stream === stream) {
        return lane.device;
      }
    }
    return undefined;
  }

  get threads(): readonly Lane[] {
    return this.#threads.lanes;
  }

  #extendStreams(): void {
    const { activities } = this.#gpu;
    const { device, stream, count } = activities;
    const rowsOfLane = new Map<number, GrowingIndices>();
    for (let row = this.#taken; row < count; row += 1) {
      const key = (device[row] ?? 0) * 2 ** 32 + (stream[row] ?? 0);
      let rows = rowsOfLane.get(key);
      if (rows === undefined) {
        rows = new GrowingIndices();
        rowsOfLane.set(key, rows);
      }
      rows.push(row);
    }
    for (const [of, added] of rowsOfLane) {
      this.#laneOf(of, added.at(0)).stack.append(spansOf(this.#gpu, added.view()));
    }
    this.#taken = count;
  }

  #laneOf(key: number, row: number): StreamLane {
    const { device, stream } = this.#gpu.activities;
    const { names } = this.#gpu;
    const lane = this.#streams.get(key) ?? {
      get title(): string {
        return names.stream(this.stream);
      },
      device: device[row] ?? 0,
      stream: stream[row] ?? 0,
      stack: new SpanStack(),
    };
    this.#streams.set(key, lane);
    return lane;
  }
}

function spansOf({ activities }: GpuActivities, rows: Int32Array<ArrayBuffer>): Spans {
  const kindOf = spanKindOf(activities);
  const fromNs = new Float64Array(rows.length);
  const toNs = new Float64Array(rows.length);
  const kind = new Uint8Array(rows.length);
  // Not by `from`, which makes an object of each value.
  for (let place = 0; place < rows.length; place += 1) {
    const row = rows[place] ?? 0;
    fromNs[place] = activities.fromNs[row] ?? 0;
    toNs[place] = activities.toNs[row] ?? 0;
    kind[place] = kindOf(row);
  }
  return { fromNs, toNs, kind, source: rows };
}
