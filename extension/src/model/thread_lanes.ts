import type { Lane } from "./lane.ts";
import { RangeSpans } from "./range_spans.ts";
import { SpanKind } from "./span_kinds.ts";
import { SpanList, SpanStack } from "./span_stack.ts";
import type { GpuActivities } from "./gpu_activities.ts";

const HOST = 0;

interface ThreadLane extends Lane {
  readonly stack: SpanStack;
  isQuiet: boolean;
  /** What is added next. */
  readonly added: SpanList;
}

/** The lanes of host threads: their ranges, calls, waits, overheads, and what ran between calls. */
export class ThreadLanes {
  readonly #gpu: GpuActivities;
  readonly #lanes = new Map<number, ThreadLane>();
  readonly #rangeSpans: RangeSpans;
  readonly #taken = { ranges: 0, apiCalls: 0, overheads: 0, hostSamples: 0 };
  /** The waits that lie in the lanes. */
  readonly #waits = new SpanList();
  #replacements = 0;

  constructor(gpu: GpuActivities) {
    this.#gpu = gpu;
    this.#rangeSpans = new RangeSpans(gpu.ranges);
  }

  get lanes(): readonly Lane[] {
    return [...this.#lanes.values()];
  }

  /** Takes in what was added to the tables; returns other lanes if waits were replaced. */
  extended(): ThreadLanes {
    if (this.#haveWaitsChanged()) {
      return new ThreadLanes(this.#gpu).extended();
    }
    this.#rangeSpans.endClosed();
    this.#takeRanges();
    this.#takeSpans("apiCalls", () => SpanKind.call);
    this.#takeWaits();
    this.#takeSpans("overheads", () => SpanKind.overhead);
    this.#takeSpans("hostSamples", (row) => this.#gpu.hostSamples.kindOf(row));
    for (const { stack, added } of this.#lanes.values()) {
      added.moveTo(stack);
    }
    return this;
  }

  #takeRanges(): void {
    const { ranges } = this.#gpu;
    for (let row = this.#taken.ranges; row < ranges.count; row += 1) {
      const lane = this.#laneOf(ranges.thread[row] ?? HOST);
      lane.isQuiet = false;
      this.#rangeSpans.add(row, lane.added, lane.stack);
    }
    this.#taken.ranges = ranges.count;
  }

  #takeSpans(
    table: "apiCalls" | "overheads" | "hostSamples",
    kindOf: (row: number) => number,
  ): void {
    const { fromNs, toNs, thread, count } = this.#gpu[table];
    for (let row = this.#taken[table]; row < count; row += 1) {
      const lane = this.#laneOf(thread[row] ?? HOST);
      lane.isQuiet &&= table !== "apiCalls";
      lane.added.push(fromNs[row] ?? 0, toNs[row] ?? 0, kindOf(row), row);
    }
    this.#taken[table] = count;
  }

  /** Adds the waits, but not those for copies, whose calls are there already. */
  #takeWaits(): void {
    const { hostWaits } = this.#gpu;
    for (let row = this.#waits.count; row < hostWaits.count; row += 1) {
      const [fromNs, toNs] = [hostWaits.fromNs[row] ?? 0, hostWaits.toNs[row] ?? 0];
      this.#waits.push(fromNs, toNs, 0, hostWaits.thread[row] ?? HOST);
      if (!hostWaits.isOfCopy(row)) {
        const lane = this.#laneOf(hostWaits.thread[row] ?? HOST);
        lane.isQuiet = false;
        lane.added.push(fromNs, toNs, SpanKind.wait, row);
      }
    }
    this.#waits.show();
    this.#replacements = hostWaits.replacements;
  }

  /** Whether later rows replaced waits in the lanes by others. */
  #haveWaitsChanged(): boolean {
    const { hostWaits } = this.#gpu;
    const { fromNs, toNs, source, count } = this.#waits;
    if (hostWaits.replacements === this.#replacements) {
      return false;
    }
    for (let row = 0; row < count; row += 1) {
      const isSame =
        hostWaits.fromNs[row] === fromNs[row] &&
        hostWaits.toNs[row] === toNs[row] &&
        hostWaits.thread[row] === source[row];
      if (!isSame) {
        return true;
      }
    }
    return false;
  }

  #laneOf(thread: number): ThreadLane {
    const { threads } = this.#gpu;
    const lane = this.#lanes.get(thread) ?? {
      get title(): string {
        const name = threads.get(thread);
        return thread === HOST ? "host" : name === "" ? `thread ${thread}` : name;
      },
      stream: undefined,
      thread,
      isQuiet: true,
      stack: new SpanStack(),
      added: new SpanList(),
    };
    this.#lanes.set(thread, lane);
    return lane;
  }
}
