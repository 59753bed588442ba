import type { Lane } from "./lanes.ts";
import { isHostCopy, SpanKind } from "./span_kinds.ts";

/** How long a device was busy in a window; times in ns. */
export interface Busy {
  /** At least one kernel, copy, memset or graph ran. */
  readonly busyNs: number;
  readonly kernelNs: number;
  /** A copy from or to the host ran. */
  readonly copyNs: number;
  /** Such a copy and a kernel ran at once. */
  readonly overlapNs: number;
  /** A copy within or between devices ran. */
  readonly deviceCopyNs: number;
}

/** What the streams' lanes say of a window, with the definitions of gpuviz/analysis/overlap.py. */
export function busyIn(lanes: readonly Lane[], fromNs: number, toNs: number): Busy {
  const rows = lanes.filter((lane) => lane.stream !== undefined).flatMap((lane) => lane.stack.rows);
  const unionOf = (isMeant: (kind: number) => boolean): number => {
    const begins: number[] = [];
    const ends: number[] = [];
    for (const row of rows) {
      const { fromNs: from, toNs: to, kind } = row;
      const [first, last] = row.range(fromNs, toNs);
      for (let span = first; span < last; span += 1) {
        if (isMeant(kind[span] ?? 0)) {
          begins.push(Math.max(from[span] ?? 0, fromNs));
          ends.push(Math.min(to[span] ?? 0, toNs));
        }
      }
    }
    return unionNs(Float64Array.from(begins), Float64Array.from(ends));
  };
  const isKernel = (kind: number): boolean => kind === SpanKind.kernel;
  const kernelNs = unionOf(isKernel);
  const copyNs = unionOf(isHostCopy);
  const eitherNs = unionOf((kind) => isKernel(kind) || isHostCopy(kind));
  return {
    busyNs: unionOf((kind) => kind !== SpanKind.streamRange),
    kernelNs,
    copyNs,
    overlapNs: kernelNs + copyNs - eitherNs,
    deviceCopyNs: unionOf((kind) => kind === SpanKind.deviceToDevice),
  };
}

/** The time in at least one interval. */
function unionNs(begins: Float64Array<ArrayBuffer>, ends: Float64Array<ArrayBuffer>): number {
  begins.sort();
  ends.sort();
  let total = 0;
  let open = 0;
  let since = 0;
  let ended = 0;
  for (const begin of begins) {
    for (; open > 0 && (ends[ended] ?? Infinity) < begin; ended += 1) {
      open -= 1;
      total += open === 0 ? (ends[ended] ?? 0) - since : 0;
    }
    since = open === 0 ? begin : since;
    open += 1;
  }
  return open > 0 ? total + (ends.at(-1) ?? since) - since : total;
}
