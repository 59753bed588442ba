import { GrowingIndices } from "../base/growing.ts";
import type { Names } from "./names.ts";
import { OPEN } from "./ranges.ts";
import { SpanKind, spanKindOf, spanKindOfRange } from "./span_kinds.ts";
import { SpanStack, type Spans } from "./span_stack.ts";
import { SynchronizationKind } from "./synchronizations.ts";
import type { Work } from "./work.ts";

/** A stream's or a host thread's spans. */
export interface Lane {
  readonly title: string;
  /** The id of its stream, undefined for a thread. */
  readonly stream: number | undefined;
  readonly stack: Pick<SpanStack, "rows" | "count">;
}

export interface StreamLane extends Lane {
  readonly device: number;
  readonly stream: number;
  readonly stack: SpanStack;
}

/** The lanes of a recording: one for each device and stream, one for each host thread. */
export class Lanes {
  readonly #work: Work;
  readonly #names: Names;
  readonly #streams = new Map<string, StreamLane>();
  #threads: readonly Lane[] = [];
  #taken = 0;

  constructor(work: Work, names: Names) {
    this.#work = work;
    this.#names = names;
  }

  /** Takes in what was added to the tables; a range that is still open ends at `endNs`. */
  extend(endNs: number): void {
    this.#extendStreams();
    this.#threads = threadLanes(this.#work, endNs);
  }

  /** The lanes of a device's streams, in the order of their ids. */
  ofDevice(device: number): StreamLane[] {
    return [...this.#streams.values()]
      .filter((lane) => lane.device === device)
      .sort((left, right) => left.stream - right.stream);
  }

  get devices(): number[] {
    return [...new Set([...this.#streams.values()].map((lane) => lane.device))];
  }

  get threads(): readonly Lane[] {
    return this.#threads;
  }

  #extendStreams(): void {
    const { activities } = this.#work;
    const { device, stream, count } = activities;
    const rowsOfLane = new Map<string, GrowingIndices>();
    let key = "";
    let rows = new GrowingIndices();
    for (let row = this.#taken; row < count; row += 1) {
      const isSame = device[row] === device[row - 1] && stream[row] === stream[row - 1];
      if (key === "" || !isSame) {
        key = `${device[row]} ${stream[row]}`;
        rows = rowsOfLane.get(key) ?? new GrowingIndices();
        rowsOfLane.set(key, rows);
      }
      rows.push(row);
    }
    for (const [of, added] of rowsOfLane) {
      this.#laneOf(of, added.at(0)).stack.append(spansOf(this.#work, added.view()));
    }
    this.#taken = count;
  }

  #laneOf(key: string, row: number): StreamLane {
    const { device, stream } = this.#work.activities;
    const names = this.#names;
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

function spansOf({ activities }: Work, rows: Int32Array<ArrayBuffer>): Spans {
  const { fromNs, toNs } = activities;
  return {
    fromNs: Float64Array.from(rows, (row) => fromNs[row] ?? 0),
    toNs: Float64Array.from(rows, (row) => toNs[row] ?? 0),
    kind: Uint8Array.from(rows, spanKindOf(activities)),
    source: rows,
  };
}

interface ThreadSpans {
  readonly fromNs: number[];
  readonly toNs: number[];
  readonly kind: number[];
  readonly source: number[];
}

function threadLanes(work: Work, endNs: number): Lane[] {
  const spans = new Map<number, ThreadSpans>();
  const add = (thread: number, from: number, to: number, kind: number, source: number): void => {
    const own = spans.get(thread) ?? { fromNs: [], toNs: [], kind: [], source: [] };
    spans.set(thread, own);
    own.fromNs.push(from);
    own.toNs.push(to);
    own.kind.push(kind);
    own.source.push(source);
  };
  const { ranges, apiCalls } = work;
  ranges.fromNs.forEach((from, row) => {
    const end = ranges.toNs[row] ?? OPEN;
    const kind = spanKindOfRange(ranges.kind[row] ?? 0);
    add(ranges.thread[row] ?? 0, from, end === OPEN ? endNs : end, kind, row);
  });
  const { fromNs, toNs, thread } = apiCalls;
  for (let row = 0; row < apiCalls.count; row += 1) {
    add(thread[row] ?? 0, fromNs[row] ?? 0, toNs[row] ?? 0, SpanKind.call, row);
  }
  addWaits(work, [...spans.keys()], add);
  const { overheads } = work;
  for (let row = 0; row < overheads.count; row += 1) {
    const [from = 0, to = 0] = [overheads.fromNs[row], overheads.toNs[row]];
    add(overheads.thread[row] ?? 0, from, to, SpanKind.overhead, row);
  }
  return [...spans].map(([id, own]) => {
    const stack = new SpanStack();
    stack.append(own);
    return { title: threadTitle(work, id), stream: undefined, stack };
  });
}

/** Waits have no thread of their own; that of their call is known where calls were recorded. */
function addWaits(
  { synchronizations, apiCalls }: Work,
  threads: readonly number[],
  add: (thread: number, from: number, to: number, kind: number, source: number) => void,
): void {
  const { fromNs, toNs, kind, correlation } = synchronizations;
  const only = threads.length === 1 ? (threads[0] ?? 0) : 0;
  for (let row = 0; row < synchronizations.count; row += 1) {
    if ((kind[row] ?? 0) >= SynchronizationKind.eventSynchronize) {
      const call = apiCalls.byCorrelation.last(correlation[row] ?? 0);
      const thread = call === undefined ? only : (apiCalls.thread[call] ?? only);
      add(thread, fromNs[row] ?? 0, toNs[row] ?? 0, SpanKind.wait, row);
    }
  }
}

function threadTitle(work: Work, id: number): string {
  const name = work.threads.get(id);
  return id === 0 ? "host" : name === "" ? `thread ${id}` : name;
}
