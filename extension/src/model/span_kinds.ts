import { ActivityKind, CopyKind, type Activities } from "./activities.ts";
import { RangeKind } from "./ranges.ts";

/** What a span in a lane is; its place here is its place in the palette of lanes. */
export const SPAN_KINDS = [
  "kernel",
  "graph launch",
  "copy host to device",
  "copy device to host",
  "copy device to device",
  "other copy",
  "memset",
  "range on a stream",
  "cell",
  "range",
  "NVTX range",
  "host waits",
  "CUDA call",
  "idle gap",
  "overhead of CUDA and CUPTI",
  "CUDA allocates memory",
  "CUDA releases memory",
] as const;

export const SpanKind = {
  kernel: 0,
  graph: 1,
  hostToDevice: 2,
  deviceToHost: 3,
  deviceToDevice: 4,
  otherCopy: 5,
  memset: 6,
  streamRange: 7,
  cell: 8,
  range: 9,
  nvtx: 10,
  wait: 11,
  call: 12,
  idle: 13,
  overhead: 14,
  allocation: 15,
  release: 16,
} as const;

const OF_ACTIVITY: Readonly<Record<number, number>> = {
  [ActivityKind.kernel]: SpanKind.kernel,
  [ActivityKind.memset]: SpanKind.memset,
  [ActivityKind.graph]: SpanKind.graph,
  [ActivityKind.range]: SpanKind.streamRange,
};

const OF_COPY: Readonly<Record<number, number>> = {
  [CopyKind.hostToDevice]: SpanKind.hostToDevice,
  [CopyKind.deviceToHost]: SpanKind.deviceToHost,
  [CopyKind.deviceToDevice]: SpanKind.deviceToDevice,
};

/** A function of the row that gives the kind of an activity; one of a newer version is a kernel. */
export function spanKindOf({ kind, copyKind }: Activities): (row: number) => number {
  return (row) =>
    kind[row] === ActivityKind.memcpy
      ? (OF_COPY[copyKind[row] ?? 0] ?? SpanKind.otherCopy)
      : (OF_ACTIVITY[kind[row] ?? 0] ?? SpanKind.kernel);
}

export function isCopy(kind: number): boolean {
  return kind >= SpanKind.hostToDevice && kind <= SpanKind.otherCopy;
}

/** Whether a span is a row of `Activities`. */
export function isActivity(kind: number): boolean {
  return kind <= SpanKind.streamRange;
}

/** Whether a span is a row of `Ranges`. */
export function isHostRange(kind: number): boolean {
  return kind >= SpanKind.cell && kind <= SpanKind.nvtx;
}

/** Whether a span is a row of `MemoryOperations`, which take no time. */
export function isMemoryOperation(kind: number): boolean {
  return kind === SpanKind.allocation || kind === SpanKind.release;
}

export function spanKindOfRange(kind: number): number {
  return kind === RangeKind.cell
    ? SpanKind.cell
    : kind === RangeKind.nvtx
      ? SpanKind.nvtx
      : SpanKind.range;
}
