import type { Lane } from "./lanes.ts";
import { RangeSpans } from "./range_spans.ts";
import { SpanKind } from "./span_kinds.ts";
import { SpanList, SpanStack } from "./span_stack.ts";
import { SynchronizationKind } from "./host_calls.ts";
import type { GpuActivities } from "./gpu_activities.ts";

const HOST = 0;

interface ThreadLane extends Lane {
  readonly stack: SpanStack;
  /** What is added next. */
  readonly added: SpanList;
}

/** The lanes of host threads: their ranges, calls, waits and overheads. */
export class ThreadLanes {
  readonly #gpu: GpuActivities;
  readonly #lanes = new Map<number, ThreadLane>();
  readonly #rangeSpans: RangeSpans;
  readonly #taken = { ranges: 0, apiCalls: 0, waits: 0, overheads: 0 };
  /** Those that may wait: other threads have nothing but overheads. */
  readonly #callers = new Set<number>();
  /** Waits whose call had not come when they came; they wait for it until the next call. */
  readonly #early: number[] = [];
  /** Whether waits lie in a lane because there was no other. */
  #hasGuessed = false;

  constructor(gpu: GpuActivities) {
    this.#gpu = gpu;
    this.#rangeSpans = new RangeSpans(gpu.ranges);
  }

  get lanes(): readonly Lane[] {
    return [...this.#lanes.values()];
  }

  /**
   * Takes in what was added to the tables.
   *
   * Returns the lanes: others if which thread waited was a guess from how many there were, and now
   * there are more.
   */
  extended(): ThreadLanes {
    const threads = this.#threadCount;
    this.#rangeSpans.endClosed();
    this.#takeRanges();
    this.#takeSpans("apiCalls", SpanKind.call);
    if (this.#hasGuessed && this.#threadCount !== threads) {
      return new ThreadLanes(this.#gpu).extended();
    }
    this.#takeWaits();
    this.#takeSpans("overheads", SpanKind.overhead);
    for (const { stack, added } of this.#lanes.values()) {
      added.moveTo(stack);
    }
    return this;
  }

  get #threadCount(): number {
    return this.#callers.size - (this.#callers.has(HOST) ? 1 : 0);
  }

  #takeRanges(): void {
    const { ranges } = this.#gpu;
    for (let row = this.#taken.ranges; row < ranges.count; row += 1) {
      this.#callers.add(ranges.thread[row] ?? HOST);
      const { added, stack } = this.#laneOf(ranges.thread[row] ?? HOST);
      this.#rangeSpans.add(row, added, stack);
    }
    this.#taken.ranges = ranges.count;
  }

  #takeSpans(table: "apiCalls" | "overheads", kind: number): void {
    const { fromNs, toNs, thread, count } = this.#gpu[table];
    for (let row = this.#taken[table]; row < count; row += 1) {
      const { added } = this.#laneOf(thread[row] ?? HOST);
      added.push(fromNs[row] ?? 0, toNs[row] ?? 0, kind, row);
      if (kind === SpanKind.call) {
        this.#callers.add(thread[row] ?? HOST);
      }
    }
    this.#taken[table] = count;
  }

  /** Waits have no thread of their own; that of their call is known where calls were recorded. */
  #takeWaits(): void {
    const { synchronizations, apiCalls } = this.#gpu;
    const { kind, correlation, count } = synchronizations;
    for (const row of this.#early.splice(0)) {
      this.#addWait(row, apiCalls.byCorrelation.last(correlation[row] ?? 0));
    }
    for (let row = this.#taken.waits; row < count; row += 1) {
      if ((kind[row] ?? 0) >= SynchronizationKind.event_synchronize) {
        const call = apiCalls.byCorrelation.last(correlation[row] ?? 0);
        if (call === undefined && apiCalls.count > 0) {
          this.#early.push(row);
        } else {
          this.#addWait(row, call);
        }
      }
    }
    this.#taken.waits = count;
  }

  #addWait(row: number, call: number | undefined): void {
    const { synchronizations, apiCalls } = this.#gpu;
    const [only] = [...this.#callers].filter((thread) => thread !== HOST);
    const guessed = this.#threadCount === 1 ? (only ?? HOST) : HOST;
    this.#hasGuessed ||= call === undefined;
    const thread = call === undefined ? guessed : (apiCalls.thread[call] ?? HOST);
    this.#laneOf(thread).added.push(
      synchronizations.fromNs[row] ?? 0,
      synchronizations.toNs[row] ?? 0,
      SpanKind.wait,
      row,
    );
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
      stack: new SpanStack(),
      added: new SpanList(),
    };
    this.#lanes.set(thread, lane);
    return lane;
  }
}
