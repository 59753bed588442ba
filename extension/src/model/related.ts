import { formatDuration, formatExactBytes, formatTime } from "../base/format.ts";
import { originOf } from "./blocks.ts";
import type { DeviceTimeline } from "./device_timeline.ts";
import type { Link, Links } from "./links.ts";
import type { Names } from "./names.ts";
import type { Gap, Selected } from "./selected.ts";
import { isActivity, tableOfSpan, SpanKind, spanKindOf } from "./span_kinds.ts";
import type { Stacks } from "./stacks.ts";
import type { GpuActivities } from "./gpu_activities.ts";
import type { GpuDescriptions } from "./gpu_description.ts";

/** A table of what belongs to a selection; each row can be selected in turn. */
export interface Related {
  readonly title: string;
  readonly headings: readonly string[];
  readonly rows: readonly { readonly cells: readonly string[]; readonly selected: Selected }[];
  /** How many rows there are, of which `rows` are the first. */
  readonly total: number;
}

const MOST_ROWS = 200;

/** What the tables about a selection are made from. */
export interface RelatedContents {
  readonly device: number;
  readonly timeline: DeviceTimeline;
  readonly gpu: GpuActivities;
  readonly links: Links;
  readonly stacks: Stacks;
  readonly names: Names;
  readonly describeGpu: GpuDescriptions;
}

/** The launches that touched a block, the blocks that a launch touched, or what a call launched. */
export function relatedTo(selected: Selected, contents: RelatedContents): Related | undefined {
  const { links } = contents;
  if (selected.kind === "gap") {
    return hostTable(selected.gap, contents);
  }
  if (selected.kind === "block") {
    return launchTable("Launches that touched it", links.launchesOf(selected.block), contents);
  }
  if (isActivity(selected.spanKind)) {
    return blockTable(links.blocksOf(selected.row), contents);
  }
  if (tableOfSpan(selected.spanKind) === "ranges" || selected.spanKind === SpanKind.call) {
    const launched = links.launchedBy(selected.spanKind, selected.row);
    const rows = launched.map((row) => ({ row, access: "" }));
    return launchTable("Launches in it", rows, contents);
  }
  return undefined;
}

function launchTable(
  title: string,
  launches: readonly Link[],
  { gpu, names, describeGpu }: RelatedContents,
): Related {
  const { activities } = gpu;
  const kindOf = spanKindOf(activities);
  const hasAccess = launches.some((link) => link.access !== "");
  const rows = launches.slice(0, MOST_ROWS).map(({ row, access }) => {
    const spanKind = kindOf(row);
    const begin = activities.fromNs[row] ?? 0;
    const cells = [
      describeGpu.name(spanKind, row),
      ...(hasAccess ? [access] : []),
      names.stream(activities.stream[row] ?? 0),
      formatTime(begin, 1000),
      formatDuration((activities.toNs[row] ?? 0) - begin),
    ];
    return { cells, selected: { kind: "span", spanKind, row } as const };
  });
  const headings = ["Activity", ...(hasAccess ? ["access"] : []), "stream", "start", "duration"];
  return { title, headings, rows, total: launches.length };
}

/** The CUDA calls that ran while nothing ran on the GPU, the longest first. */
function hostTable({ fromNs, toNs }: Gap, { gpu, stacks, describeGpu }: RelatedContents): Related {
  const { apiCalls, threads } = gpu;
  const inside: (readonly [call: number, partNs: number])[] = [];
  for (let call = 0; call < apiCalls.count; call += 1) {
    const begin = Math.max(apiCalls.fromNs[call] ?? 0, fromNs);
    const end = Math.min(apiCalls.toNs[call] ?? 0, toNs);
    if (end > begin) {
      inside.push([call, end - begin]);
    }
  }
  const longest = inside.toSorted(([, left], [, right]) => right - left).slice(0, MOST_ROWS);
  const rows = longest.map(([call, partNs]) => {
    const thread = apiCalls.thread[call] ?? 0;
    const cells = [
      describeGpu.name(SpanKind.call, call),
      threads.get(thread) || `thread ${thread}`,
      stacks.siteOf(apiCalls.stack[call] ?? 0),
      formatTime(apiCalls.fromNs[call] ?? 0, 1000),
      formatDuration(partNs),
    ];
    return { cells, selected: { kind: "span", spanKind: SpanKind.call, row: call } as const };
  });
  return {
    title: "CUDA calls of the host during this time",
    headings: ["CUDA call", "thread", "called by", "began", "of the gap"],
    rows,
    total: inside.length,
  };
}

function blockTable(blocks: readonly Link[], { timeline, stacks }: RelatedContents): Related {
  const { events } = timeline;
  const rows = blocks.slice(0, MOST_ROWS).map(({ row: block, access }) => {
    const origin = originOf(timeline.blocks, block);
    const { fromNs, toNs } = timeline.lifeOf(block);
    const cells = [
      formatExactBytes(timeline.blocks.size[block] ?? 0),
      access,
      stacks.siteOf(events.stack[origin] ?? 0),
      formatTime(events.timeNs[origin] ?? 0, 1000),
      formatDuration(toNs - fromNs),
    ];
    return { cells, selected: { kind: "block", block } as const };
  });
  return {
    title: "Blocks that it touched",
    headings: ["Block", "access", "allocated by", "at", "lived"],
    rows,
    total: blocks.length,
  };
}
