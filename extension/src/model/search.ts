import { ActivityKind } from "../wire/codes.ts";
import { counted, formatBytes, formatDuration, formatShare, formatTime } from "../base/format.ts";
import { originOf } from "./blocks.ts";
import type { Selected } from "./selected.ts";
import type { RelatedContents } from "./related.ts";
import { describeFrame } from "./stacks.ts";
import { SPAN_KINDS, SpanKind, spanKindOf, spanKindOfRange } from "./span_kinds.ts";

/** Something found, and what to select for it. */
export interface Hit {
  readonly what: string;
  readonly detail: string;
  /** All of its name, where `what` is shorter. */
  readonly name?: string;
  readonly selected: Selected;
}

const ADDRESS = /^0x[0-9a-f]+$/;

/** Finds activities by name or launching line, ranges by name, blocks by line or address. */
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

/** For each name and launching line of which one fits, the activity that took longest. */
function activitiesNamed(wanted: string, { gpu, stacks, device }: RelatedContents): Hit[] {
  const { activities, apiCalls, strings } = gpu;
  const { name, kind, fromNs, toNs, device: devices, correlation } = activities;
  const sites = new Map([[0, { site: "", isFound: false }]]);
  const siteOf = (row: number): { readonly site: string; readonly isFound: boolean } => {
    const stack = apiCalls.stackOf(correlation[row]);
    const known = sites.get(stack);
    if (known !== undefined) {
      return known;
    }
    const { site, source } = stacks.callSiteOf(stack);
    const isFound = `${site} ${source}`.toLowerCase().includes(wanted);
    const added = { site: stacks.siteOf(stack), isFound };
    sites.set(stack, added);
    return added;
  };
  const kindOf = spanKindOf(activities);
  const fits = new Map<number, boolean>();
  type Found = { isNamed: boolean; count: number; totalNs: number; longest: number };
  const found = new Map<string, Found>();
  let kernelsNs = 0;
  for (let row = 0; row < activities.count; row += 1) {
    const took = Math.max((toNs[row] ?? 0) - (fromNs[row] ?? 0), 0);
    if (devices[row] !== device) {
      continue;
    }
    kernelsNs += kind[row] === ActivityKind.kernel ? took : 0;
    const id = name[row] ?? 0;
    const isNamed = fits.get(id) ?? strings.get(id).toLowerCase().includes(wanted);
    fits.set(id, isNamed);
    const { site, isFound } = siteOf(row);
    if (!isNamed && !isFound) {
      continue;
    }
    const key = `${id} ${kindOf(row)} ${site}`;
    const sum = found.get(key) ?? { isNamed, count: 0, totalNs: 0, longest: row };
    const longest = (toNs[sum.longest] ?? 0) - (fromNs[sum.longest] ?? 0);
    sum.count += 1;
    sum.totalNs += took;
    sum.longest = took > longest ? row : sum.longest;
    found.set(key, sum);
  }
  return [...found.values()]
    .toSorted(
      (left, right) => Number(right.isNamed) - Number(left.isNamed) || right.totalNs - left.totalNs,
    )
    .map(({ count, totalNs, longest }) => {
      const text = strings.get(name[longest] ?? 0) || (SPAN_KINDS[kindOf(longest)] ?? "");
      const isKernel = kind[longest] === ActivityKind.kernel;
      const share = isKernel
        ? ` (${formatShare(totalNs / Math.max(kernelsNs, 1))} of kernels)`
        : "";
      const { site } = siteOf(longest);
      const line = site === "" ? "" : `, ${site}`;
      return {
        what: isKernel ? gpu.kernelName(name[longest] ?? 0) : text,
        name: text,
        detail: `${counted(count, "time")}, ${formatDuration(totalNs)} in all${share}${line}`,
        selected: { kind: "span", spanKind: kindOf(longest), row: longest },
      };
    });
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
