import type { DeviceContents } from "./device_contents.ts";
import { numbersOf, type Window } from "./grouping.ts";
import { stackSums, SUM_NAMES, type Sums } from "./stack_sums.ts";
import type { CallSite, Frame } from "./stacks.ts";

/** A row of `Recording.lines()`. */
export interface LineRow {
  readonly callSite: CallSite;
  /** Undefined where there is no call stack. */
  readonly frame: Frame | undefined;
  readonly sums: Sums;
  /** One of its call stacks, that with most bytes at the peak if it allocated. */
  readonly stack: number;
  /** The largest block, at the peak if there is one then; undefined without blocks. */
  largest: number | undefined;
}

/** What each line of the program costs on a device, most bytes at the peak first. */
export function lineRows(contents: DeviceContents, window: Window): LineRow[] {
  const { stacks, timeline } = contents;
  const bytesOf = (block: number | undefined): number => timeline.blocks.size[block ?? -1] ?? -1;
  const lineOf = numbersOf((stack) => stacks.callSiteOf(stack).site);
  const lines = new Map<number, LineRow>();
  for (const { stack, sums, largest } of stackSums(contents, window)) {
    const row = lines.get(lineOf(stack)) ?? {
      callSite: stacks.callSiteOf(stack),
      frame: stacks.lineFrameOf(stack),
      sums: noSums(),
      stack,
      largest: undefined,
    };
    lines.set(lineOf(stack), row);
    const isComparable = sums.liveBytes > 0 || row.sums.liveBytes === 0;
    if (isComparable && bytesOf(largest) > bytesOf(row.largest)) {
      row.largest = largest;
    }
    add(row.sums, sums);
  }
  return [...lines.values()].sort(compare);
}

/** The sums of the lines of a file, by line number. */
export function sumsByLine(rows: readonly LineRow[], filename: string): (line: number) => Sums {
  const found = new Map<number, Sums>();
  for (const { frame, sums } of rows) {
    if (frame?.filename === filename) {
      const known = found.get(frame.line) ?? noSums();
      found.set(frame.line, known);
      add(known, sums);
    }
  }
  const nothing = noSums();
  return (line) => found.get(line) ?? nothing;
}

function noSums(): Sums {
  return Object.fromEntries(SUM_NAMES.map((name) => [name, 0])) as unknown as Sums;
}

function add(to: Sums, more: Sums): void {
  for (const name of SUM_NAMES) {
    to[name] += more[name];
  }
}

const ORDER = ["liveBytes", "kernelNs", "copyNs", "waitNs", "totalBytes", "idleNs"] as const;

function compare(left: LineRow, right: LineRow): number {
  const name = ORDER.find((each) => left.sums[each] !== right.sums[each]);
  if (name !== undefined) {
    return right.sums[name] - left.sums[name];
  }
  return left.callSite.site < right.callSite.site ? -1 : 1;
}
