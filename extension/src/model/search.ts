import { counted, formatBytes, formatDuration, formatShare, formatTime } from "../base/format.ts";
import { originOf } from "./blocks.ts";
import { shortKernelName } from "./kernel_name.ts";
import type { Selected } from "./selected.ts";
import type { RelatedContents } from "./related.ts";
import { describeFrame } from "./stacks.ts";
import { SpanKind, spanKindOf, spanKindOfRange } from "./span_kinds.ts";

/** Something found, and what to select for it. */
export interface Hit {
  readonly what: string;
  readonly detail: string;
  /** All of its name, where `what` is shorter. */
  readonly name?: string;
  readonly selected: Selected;
}

const ADDRESS = /^0x[0-9a-f]+$/;

/** Finds kernels, ranges and cells by name, blocks by the line that allocated them or an address. */
export function search(query: string, contents: RelatedContents): Hit[] {
  const wanted = query.trim().toLowerCase();
  if (wanted === "") {
    return [];
  }
  return ADDRESS.test(wanted)
    ? blocksAt(Number.parseInt(wanted, 16), contents)
    : [
        ...activitiesNamed(wanted, contents),
        ...rangesNamed(wanted, contents),
        ...sitesNamed(wanted, contents),
      ];
}

function blocksAt(address: number, { timeline, stacks }: RelatedContents): Hit[] {
  const { blocks, events } = timeline;
  const hits: Hit[] = [];
  for (let block = 0; block < blocks.count; block += 1) {
    const from = blocks.address[block] ?? 0;
    if (address >= from && address < from + (blocks.size[block] ?? 0)) {
      const origin = originOf(blocks, block);
      const when = formatTime(events.timeNs[origin] ?? 0, 1000);
      hits.push({
        what: `Block of ${formatBytes(blocks.size[block] ?? 0)}`,
        detail: `at ${when}, ${stacks.siteOf(events.stack[origin] ?? 0)}`,
        selected: { kind: "block", block },
      });
    }
  }
  return hits;
}

/** For each name that fits, the activity of that name that took longest. */
function activitiesNamed(wanted: string, { gpu, timeline, device }: RelatedContents): Hit[] {
  const { activities, strings } = gpu;
  const { name, fromNs, toNs, device: devices } = activities;
  const fits = new Map<number, boolean>();
  const found = new Map<number, { count: number; totalNs: number; longest: number }>();
  for (let row = 0; row < activities.count; row += 1) {
    const id = name[row] ?? 0;
    const isWanted = fits.get(id) ?? strings.get(id).toLowerCase().includes(wanted);
    fits.set(id, isWanted);
    if (!isWanted || devices[row] !== device) {
      continue;
    }
    const sum = found.get(id) ?? { count: 0, totalNs: 0, longest: row };
    const took = (toNs[row] ?? 0) - (fromNs[row] ?? 0);
    const longest = (toNs[sum.longest] ?? 0) - (fromNs[sum.longest] ?? 0);
    sum.count += 1;
    sum.totalNs += took;
    sum.longest = took > longest ? row : sum.longest;
    found.set(id, sum);
  }
  const kindOf = spanKindOf(activities);
  return [...found]
    .toSorted(([, left], [, right]) => right.totalNs - left.totalNs)
    .map(([id, { count, totalNs, longest }]) => ({
      what: shortKernelName(strings.get(id)),
      name: strings.get(id),
      detail: `${counted(count, "time")}, ${formatDuration(totalNs)} in all (${formatShare(totalNs / timeline.endNs)})`,
      selected: { kind: "span", spanKind: kindOf(longest), row: longest },
    }));
}

function rangesNamed(wanted: string, { gpu }: RelatedContents): Hit[] {
  const { ranges, strings } = gpu;
  const { kind, name, fromNs } = ranges;
  const hits: Hit[] = [];
  for (let row = 0; row < ranges.count; row += 1) {
    const text = strings.get(name[row] ?? 0);
    if (text.toLowerCase().includes(wanted)) {
      const spanKind = spanKindOfRange(kind[row] ?? 0);
      hits.push({
        what: text,
        detail: `${spanKind === SpanKind.cell ? "cell" : "range"} at ${formatTime(fromNs[row] ?? 0, 1000)}`,
        selected: { kind: "span", spanKind, row },
      });
    }
  }
  return hits;
}

/** For each line that fits, the largest block that it allocated. */
function sitesNamed(wanted: string, { timeline, stacks }: RelatedContents): Hit[] {
  const { blocks, events } = timeline;
  const sites = new Map<number, string | undefined>();
  const found = new Map<string, { count: number; bytes: number; largest: number }>();
  for (let block = 0; block < blocks.count; block += 1) {
    const stack = events.stack[originOf(blocks, block)] ?? 0;
    if (!sites.has(stack)) {
      const site = stacks.siteOf(stack);
      const frames = stacks.framesOf(stack).map((frame) => describeFrame(frame) + frame.source);
      const isFound = frames.join("\n").toLowerCase().includes(wanted);
      sites.set(stack, isFound ? site : undefined);
    }
    const site = sites.get(stack);
    if (site !== undefined) {
      const sum = found.get(site) ?? { count: 0, bytes: 0, largest: block };
      const bytes = blocks.size[block] ?? 0;
      sum.count += 1;
      sum.bytes += bytes;
      sum.largest = bytes > (blocks.size[sum.largest] ?? 0) ? block : sum.largest;
      found.set(site, sum);
    }
  }
  return [...found]
    .toSorted(([, left], [, right]) => right.bytes - left.bytes)
    .map(([site, { count, bytes, largest }]) => ({
      what: site,
      detail: `allocated ${counted(count, "block")}, ${formatBytes(bytes)} in all`,
      selected: { kind: "block", block: largest },
    }));
}
