import {
  formatBytes,
  formatCount,
  formatDuration,
  formatExactBytes,
  formatTime,
} from "../base/format.ts";
import { busyIn } from "./busy.ts";
import { shortKernelName } from "./kernel_name.ts";
import type { Lane } from "./lanes.ts";
import type { Names } from "./names.ts";
import { OPEN } from "./ranges.ts";
import { isActivity, isHostRange, SPAN_KINDS, SpanKind } from "./span_kinds.ts";
import type { SpanRow } from "./span_row.ts";
import { describeFrame, type Stacks } from "./stacks.ts";
import type { Work } from "./work.ts";

const LONGEST_NAME = 300;

/** Turns what the GPU and the host did into lines of text for a reader. */
export class WorkDescriptions {
  readonly #work: Work;
  readonly #stacks: Stacks;
  readonly #names: Names;

  constructor(work: Work, stacks: Stacks, names: Names) {
    this.#work = work;
    this.#stacks = stacks;
    this.#names = names;
  }

  /** A lane, and how full it is in a window. */
  lane(lane: Lane, fromNs: number, toNs: number): string[] {
    const { title, stack, stream } = lane;
    const spans = stack.rows.reduce((sum, row) => {
      const [first, last] = row.range(fromNs, toNs);
      return sum + last - first;
    }, 0);
    const [only] = stack.rows;
    const takenNs =
      stack.rows.length === 1 && only !== undefined
        ? only.takenIn(fromNs, toNs)
        : busyIn([lane], fromNs, toNs).busyNs;
    const percent = ((100 * takenNs) / Math.max(toNs - fromNs, 1)).toFixed(1);
    const busy = stream === undefined ? [] : [`busy for ${percent} % of the time shown`];
    return [title, `${formatCount(spans)} spans shown`, ...busy];
  }

  /** A span, and how many others share the pixel that it is shown in. */
  spanInRow(row: SpanRow, span: number, pixelNs: number): string[] {
    const middle = ((row.fromNs[span] ?? 0) + (row.toNs[span] ?? 0)) / 2;
    const isNarrow = (row.toNs[span] ?? 0) - (row.fromNs[span] ?? 0) < pixelNs;
    const [first, last] = row.range(middle - pixelNs / 2, middle + pixelNs / 2);
    const others = last - first - 1;
    const more = isNarrow && others > 0 ? [`and ${formatCount(others)} more in this pixel`] : [];
    return [...this.span(row.kind[span] ?? 0, row.source[span] ?? 0), ...more];
  }

  /** The lines about one row of the table that a kind of span comes from. */
  span(kind: number, row: number): string[] {
    if (isActivity(kind)) {
      return this.#activity(kind, row);
    }
    if (isHostRange(kind)) {
      return this.#range(kind, row);
    }
    return kind === SpanKind.wait ? this.#wait(row) : this.#call(row);
  }

  shortName(row: SpanRow, span: number): string {
    return this.name(row.kind[span] ?? 0, row.source[span] ?? 0);
  }

  /** What a span is called where there is little room. */
  name(kind: number, row: number): string {
    const { activities, ranges, apiCalls, strings } = this.#work;
    if (kind === SpanKind.kernel) {
      return shortKernelName(strings.get(activities.name[row] ?? 0)) || "kernel";
    }
    if (isActivity(kind)) {
      const name = strings.get(activities.name[row] ?? 0);
      const bytes = activities.bytes[row] ?? 0;
      return bytes > 0 ? `${shortKind(kind)} ${formatBytes(bytes)}` : name || shortKind(kind);
    }
    if (isHostRange(kind)) {
      return strings.get(ranges.name[row] ?? 0) || shortKind(kind);
    }
    return kind === SpanKind.wait ? "waits" : strings.get(apiCalls.name[row] ?? 0);
  }

  #activity(kind: number, row: number): string[] {
    const { activities, strings } = this.#work;
    const fromNs = activities.fromNs[row] ?? 0;
    const duration = (activities.toNs[row] ?? 0) - fromNs;
    const name = cut(strings.get(activities.name[row] ?? 0));
    return [
      name === "" ? sentence(kind) : name,
      `${sentence(kind)} for ${formatDuration(duration)}, at ${formatTime(fromNs, 1000)}`,
      `stream: ${this.#names.stream(activities.stream[row] ?? 0)}`,
      ...this.#transfer(row, duration),
      ...this.#configuration(row),
      ...this.#launchedFrom(activities.correlation[row] ?? 0),
    ];
  }

  #transfer(row: number, durationNs: number): string[] {
    const { activities } = this.#work;
    const bytes = activities.bytes[row] ?? 0;
    if (bytes === 0) {
      return [];
    }
    const [from, to] = activities.memoriesOf(row);
    const memories = from === "" && to === "" ? "" : ` from ${from || "?"} to ${to || "?"} memory`;
    const rate = durationNs > 0 ? `, ${(bytes / durationNs).toPrecision(3)} GB/s` : "";
    return [`${formatExactBytes(bytes)}${memories}${rate}`];
  }

  #configuration(row: number): string[] {
    const launch = this.#work.configurations.get(this.#work.activities.launch[row] ?? 0);
    if (launch === undefined) {
      return [];
    }
    const { grid, block, registers, sharedMemory } = launch;
    const threads = [...grid, ...block].reduce((product, size) => product * size, 1);
    return [
      `grid ${grid.join(" × ")}, block ${block.join(" × ")}: ${formatCount(threads)} threads`,
      `${registers} registers a thread, ${formatBytes(sharedMemory)} shared memory a block`,
    ];
  }

  #launchedFrom(correlation: number): string[] {
    const { apiCalls } = this.#work;
    const call = apiCalls.byCorrelation.last(correlation);
    return call === undefined ? [] : this.#site("launched", apiCalls.stack[call] ?? 0);
  }

  #site(verb: string, stack: number): string[] {
    const frame = this.#stacks.userFrameOf(stack);
    if (frame === undefined) {
      return [];
    }
    const source = frame.source.trim();
    return [`${verb}: ${describeFrame(frame)}`, ...(source === "" ? [] : [`    ${source}`])];
  }

  #range(kind: number, row: number): string[] {
    const { ranges, strings } = this.#work;
    const fromNs = ranges.fromNs[row] ?? 0;
    const toNs = ranges.toNs[row] ?? OPEN;
    const length = toNs === OPEN ? "still open" : `for ${formatDuration(toNs - fromNs)}`;
    return [
      cut(strings.get(ranges.name[row] ?? 0)),
      `${sentence(kind)} ${length}, at ${formatTime(fromNs, 1000)}`,
    ];
  }

  #wait(row: number): string[] {
    const { synchronizations, apiCalls } = this.#work;
    const fromNs = synchronizations.fromNs[row] ?? 0;
    const duration = (synchronizations.toNs[row] ?? 0) - fromNs;
    const stream = synchronizations.stream[row] ?? 0;
    const call = apiCalls.byCorrelation.last(synchronizations.correlation[row] ?? 0);
    return [
      `Host waits for ${WAITED_FOR[synchronizations.kind[row] ?? 0] ?? "the GPU"}`,
      `for ${formatDuration(duration)}, at ${formatTime(fromNs, 1000)}`,
      ...(stream === 0 ? [] : [`stream: ${this.#names.stream(stream)}`]),
      ...(call === undefined ? [] : this.#site("called", apiCalls.stack[call] ?? 0)),
    ];
  }

  #call(row: number): string[] {
    const { apiCalls, strings } = this.#work;
    const fromNs = apiCalls.fromNs[row] ?? 0;
    const duration = (apiCalls.toNs[row] ?? 0) - fromNs;
    return [
      cut(strings.get(apiCalls.name[row] ?? 0)),
      `CUDA call for ${formatDuration(duration)}, at ${formatTime(fromNs, 1000)}`,
      ...this.#site("called", apiCalls.stack[row] ?? 0),
    ];
  }
}

/** By kind of synchronization. */
const WAITED_FOR = ["", "", "an event", "a stream", "the whole device"] as const;

function sentence(kind: number): string {
  const text = SPAN_KINDS[kind] ?? "";
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function shortKind(kind: number): string {
  return (SPAN_KINDS[kind] ?? "")
    .replace("copy host to device", "H→D")
    .replace("copy device to host", "D→H")
    .replace("copy device to device", "D→D");
}

function cut(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name;
}
