import {
  formatAddress,
  formatBytes,
  formatCount,
  formatDuration,
  formatExactBytes,
  formatTime,
} from "../base/format.ts";
import type { IdleLane, IdleTimes } from "./idle_gaps.ts";
import { busyIn } from "./busy.ts";
import { causesOf, idleLines, SHORT_CAUSES } from "./idle_texts.ts";
import { threadsOf } from "./launch_configurations.ts";
import type { Lane } from "./lane.ts";
import type { Names } from "./names.ts";
import { OPEN } from "./ranges.ts";
import type { Gap } from "./selected.ts";
import type { Times } from "./selected_times.ts";
import {
  isActivity,
  shadeOfKernel,
  SPAN_KINDS,
  SpanKind,
  spanKindOf,
  tableOfSpan,
} from "./span_kinds.ts";
import type { SpanRow } from "./span_row.ts";
import { describeLine, type Stacks } from "./stacks.ts";
import type { GpuActivities } from "./gpu_activities.ts";

/** Of what the host did in a gap. */
const MOST_WORKS = 4;
const LONGEST_NAME = 300;

/** Turns what the GPU and the host did into lines of text for a reader. */
export class GpuDescriptions {
  readonly #gpu: GpuActivities;
  readonly #stacks: Stacks;
  readonly #names: Names;
  readonly #shades = new Map<string, number>();

  constructor(gpu: GpuActivities, stacks: Stacks, names: Names) {
    this.#gpu = gpu;
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
    const unseenNs = this.#gpu.unseen.timeIn(fromNs, toNs);
    const share = Math.min(takenNs / Math.max(toNs - fromNs - unseenNs, 1), 1);
    const time = unseenNs > 0 ? "the recorded time shown" : "the time shown";
    const busy = stream === undefined ? [] : [`busy for ${(100 * share).toFixed(1)} % of ${time}`];
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
    switch (tableOfSpan(kind)) {
      case "activities":
        return this.#activity(kind, row);
      case "ranges":
        return this.#range(kind, row);
      case "memoryOperations":
        return this.#memoryOperation(kind, row);
      case "overheads":
        return this.#overhead(row);
      case "hostSamples":
        return this.#sample(kind, row);
      case "hostWaits":
        return this.#wait(row);
      case "apiCalls":
        return this.#call(row);
    }
  }

  /** A time without work, and its causes. */
  gap({ fromNs, toNs, next, stream }: Gap, causes: IdleTimes | undefined): string[] {
    const { activities } = this.#gpu;
    const kind = spanKindOf(activities)(next);
    const streamOfNext = this.#names.stream(activities.stream[next] ?? 0);
    return [
      `Idle for ${formatDuration(toNs - fromNs)}`,
      `time: ${formatTime(fromNs, 1000)} to ${formatTime(toNs, 1000)}`,
      stream === undefined ? "stream: all of the device" : `stream: ${this.#names.stream(stream)}`,
      ...(causes === undefined ? [] : idleLines(causes, toNs - fromNs)),
      ...this.hostWork(activities.device[next], fromNs, toNs),
      next < 0 ? "no work came after it" : `then came: ${this.name(kind, next)} on ${streamOfNext}`,
      ...this.#callSite("launched", activities.correlation[next] ?? 0),
    ];
  }

  /** What the host did in a window while a device was idle, a line each. */
  hostWork(device: number | undefined, fromNs: number, toNs: number): string[] {
    return this.#gpu.hostWork
      .within(device, fromNs, toNs)
      .slice(0, MOST_WORKS)
      .map(([text, timeNs]) => `the host: ${formatDuration(timeNs)} ${text}`);
  }

  /** A function that gives the place of a span of a row in the palette of lanes. */
  palettePlaces(row: SpanRow): (span: number) => number {
    const { kind, source } = row;
    const { activities, strings } = this.#gpu;
    return (span) =>
      kind[span] === SpanKind.kernel
        ? SPAN_KINDS.length + this.#shadeOf(strings.get(activities.name[source[span] ?? 0] ?? 0))
        : (kind[span] ?? 0);
  }

  #shadeOf(kernel: string): number {
    const shade = this.#shades.get(kernel) ?? shadeOfKernel(kernel);
    this.#shades.set(kernel, shade);
    return shade;
  }

  /** A span's name; of an idle gap in a lane its length, main cause and the line that ended it. */
  shortName(row: SpanRow, span: number, idle?: IdleLane): string {
    const source = row.source[span] ?? 0;
    if (row.kind[span] !== SpanKind.idle) {
      return this.name(row.kind[span] ?? 0, source);
    }
    const [fromNs, toNs] = [row.fromNs[span] ?? 0, row.toNs[span] ?? 0];
    const causes = idle?.causesIn(fromNs, toNs);
    const [cause] = causes === undefined ? [] : causesOf(causes);
    const { activities, apiCalls } = this.#gpu;
    const [[work] = []] =
      cause === "host" ? this.#gpu.hostWork.within(activities.device[source], fromNs, toNs) : [];
    const stack = apiCalls.stackOf(activities.correlation[source]);
    const line = this.#stacks.userFrameOf(stack)?.line ?? 0;
    return [
      formatDuration(toNs - fromNs),
      work ?? (cause === undefined ? "" : SHORT_CAUSES[cause]),
      work === undefined && line > 0 ? `:${line}` : "",
    ]
      .filter((part) => part !== "")
      .join(", ");
  }

  /** What a span is called where there is little room. */
  name(kind: number, row: number): string {
    const { activities, ranges, apiCalls, strings } = this.#gpu;
    if (kind === SpanKind.kernel) {
      return this.#gpu.kernelName(activities.name[row] ?? 0);
    }
    switch (tableOfSpan(kind)) {
      case "activities": {
        const name = strings.get(activities.name[row] ?? 0);
        const bytes = activities.bytes[row] ?? 0;
        return bytes > 0 ? `${shortKind(kind)} ${formatBytes(bytes)}` : name || shortKind(kind);
      }
      case "ranges":
        return strings.get(ranges.name[row] ?? 0) || shortKind(kind);
      case "memoryOperations":
        return formatBytes(this.#gpu.memoryOperations.bytes[row] ?? 0);
      case "overheads":
        return this.#gpu.overheads.nameOf(row);
      case "hostSamples":
        return this.#gpu.hostSamples.work.get(row) || shortKind(kind);
      case "hostWaits":
        return "waits";
      case "apiCalls":
        return strings.get(apiCalls.name[row] ?? 0);
    }
  }

  #memoryOperation(kind: number, row: number): string[] {
    const { memoryOperations, strings } = this.#gpu;
    const source = strings.get(memoryOperations.source[row] ?? 0);
    const bytes = formatExactBytes(memoryOperations.bytes[row] ?? 0);
    return [
      `${sentence(kind)}: ${bytes}`,
      `at ${formatTime(memoryOperations.fromNs[row] ?? 0, 1000)}`,
      `memory: ${memoryOperations.memoryOf(row) || "unknown"}`,
      `address: ${formatAddress(memoryOperations.address[row] ?? 0)}`,
      ...(source === "" ? [] : [`asked for by: ${cut(source)}`]),
      ...this.#callSite("called", memoryOperations.correlation[row] ?? 0),
    ];
  }

  #overhead(row: number): string[] {
    const { overheads } = this.#gpu;
    return [`Overhead: ${overheads.nameOf(row)}`, lasting(overheads, row)];
  }

  #sample(kind: number, row: number): string[] {
    const { hostSamples } = this.#gpu;
    return [
      cut(this.name(kind, row)),
      `${sentence(kind)} ${lasting(hostSamples, row)}`,
      ...this.#site("line", hostSamples.stack[row] ?? 0),
    ];
  }

  #activity(kind: number, row: number): string[] {
    const { activities, strings } = this.#gpu;
    const name = cut(strings.get(activities.name[row] ?? 0));
    return [
      name === "" ? sentence(kind) : name,
      `${sentence(kind)} ${lasting(activities, row)}`,
      `stream: ${this.#names.stream(activities.stream[row] ?? 0)}`,
      ...this.#transfer(row),
      ...this.#configuration(row),
      ...this.#callSite("launched", activities.correlation[row] ?? 0),
    ];
  }

  #transfer(row: number): string[] {
    const { activities } = this.#gpu;
    const bytes = activities.bytes[row] ?? 0;
    if (bytes === 0) {
      return [];
    }
    const [from, to] = activities.memoriesOf(row);
    const memories = from === "" && to === "" ? "" : ` from ${from || "?"} to ${to || "?"} memory`;
    const durationNs = (activities.toNs[row] ?? 0) - (activities.fromNs[row] ?? 0);
    const rate = durationNs > 0 ? `, ${formatBytes((bytes / durationNs) * 1e9)}/s` : "";
    return [`${formatExactBytes(bytes)}${memories}${rate}`];
  }

  #configuration(row: number): string[] {
    const launch = this.#gpu.configurations.get(this.#gpu.activities.launch[row] ?? 0);
    if (launch === undefined) {
      return [];
    }
    const { grid, block, registers, sharedMemory } = launch;
    return [
      `grid ${grid.join(" × ")}, block ${block.join(" × ")}: ${formatCount(threadsOf(launch))} threads`,
      `${registers} registers a thread, ${formatBytes(sharedMemory)} shared memory a block`,
    ];
  }

  /** The line that made the call of a correlation id, if that is known. */
  #callSite(verb: string, correlation: number): string[] {
    return this.#site(verb, this.#gpu.apiCalls.stackOf(correlation));
  }

  #site(verb: string, stack: number): string[] {
    const frame = this.#stacks.userFrameOf(stack);
    return frame === undefined
      ? []
      : [...describeLine(verb, frame), ...this.#stacks.placeLinesOf(stack)];
  }

  #range(kind: number, row: number): string[] {
    const { ranges, strings } = this.#gpu;
    const name = cut(strings.get(ranges.name[row] ?? 0));
    return [...(name === "" ? [] : [name]), `${sentence(kind)} ${lasting(ranges, row)}`];
  }

  #wait(row: number): string[] {
    const { hostWaits } = this.#gpu;
    const stream = hostWaits.stream[row] ?? 0;
    return [
      `Host waits for ${hostWaits.waitedFor(row)}`,
      lasting(hostWaits, row),
      ...(stream === 0 ? [] : [`stream: ${this.#names.stream(stream)}`]),
      ...this.#site("called", hostWaits.stack[row] ?? 0),
    ];
  }

  #call(row: number): string[] {
    const { apiCalls, strings } = this.#gpu;
    return [
      cut(strings.get(apiCalls.name[row] ?? 0)),
      `CUDA call ${lasting(apiCalls, row)}`,
      ...this.#site("called", apiCalls.stack[row] ?? 0),
    ];
  }
}

/** How long a row lasted and when it began, as `for 1.50 ms, at 2.000 s`. */
function lasting({ fromNs, toNs }: Times, row: number): string {
  const [begin, end] = [fromNs[row] ?? 0, toNs[row] ?? OPEN];
  const length = end === OPEN ? "still open" : `for ${formatDuration(end - begin)}`;
  return `${length}, at ${formatTime(begin, 1000)}`;
}

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
