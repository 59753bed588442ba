import { ActivityKind, CopyKind, RangeKind } from "../wire/codes.ts";
import { codesOf } from "../base/codes.ts";
import type { Activities } from "./activities.ts";

/** What a span in a lane is; the order is that of the palette of lanes. */
const TEXTS = {
  kernel: "kernel",
  graph: "graph launch",
  hostToDevice: "copy host to device",
  deviceToHost: "copy device to host",
  deviceToDevice: "copy device to device",
  otherCopy: "other copy",
  memset: "memset",
  streamRange: "range on a stream",
  cell: "cell",
  range: "range",
  nvtx: "NVTX range",
  wait: "host waits",
  call: "CUDA call",
  idle: "idle gap",
  overhead: "overhead of CUDA and CUPTI",
  allocation: "CUDA allocates memory",
  release: "CUDA releases memory",
  load: "kernels loaded",
  compile: "kernels compiled",
  forward: "forward pass",
  backward: "backward pass",
  optimizer: "optimizer step",
} as const;
export const SPAN_KINDS = Object.values(TEXTS);
export const SpanKind = codesOf(Object.keys(TEXTS) as (keyof typeof TEXTS)[]);

/** How many shades tell kernels from each other; they come after the kinds in the palette. */
export const KERNEL_SHADES = 8;

const SPREAD = 0x9e3779b1;

/** The shade of a kernel, the same for every kernel of a name. */
export function shadeOfKernel(name: string): number {
  let hash = 0;
  for (let at = 0; at < name.length; at += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(at), SPREAD);
  }
  // The highest bits depend on every character and its place.
  return (hash >>> 16) % KERNEL_SHADES;
}

const OF_ACTIVITY: Readonly<Record<number, number>> = {
  [ActivityKind.kernel]: SpanKind.kernel,
  [ActivityKind.memset]: SpanKind.memset,
  [ActivityKind.graph]: SpanKind.graph,
  [ActivityKind.range]: SpanKind.streamRange,
};

const OF_COPY: Readonly<Record<number, number>> = {
  [CopyKind.host_to_device]: SpanKind.hostToDevice,
  [CopyKind.device_to_host]: SpanKind.deviceToHost,
  [CopyKind.device_to_device]: SpanKind.deviceToDevice,
  [CopyKind.peer_to_peer]: SpanKind.deviceToDevice,
  [CopyKind.peer_to_host]: SpanKind.deviceToDevice,
  [CopyKind.host_to_peer]: SpanKind.deviceToDevice,
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

/** Whether a span is a copy from or to the host, or of unknown direction. */
export function isHostCopy(kind: number): boolean {
  return isCopy(kind) && kind !== SpanKind.deviceToDevice;
}

/** Whether a span is a row of `Activities`. */
export function isActivity(kind: number): boolean {
  return kind <= SpanKind.streamRange;
}

/** Whether a span is a row of `Ranges`. */
export function isHostRange(kind: number): boolean {
  return (kind >= SpanKind.cell && kind <= SpanKind.nvtx) || kind >= SpanKind.load;
}

/** Whether a span is a row of `MemoryOperations`, which take no time. */
export function isMemoryOperation(kind: number): boolean {
  return kind === SpanKind.allocation || kind === SpanKind.release;
}

const OF_RANGE: Readonly<Record<number, number>> = {
  [RangeKind.cell]: SpanKind.cell,
  [RangeKind.nvtx]: SpanKind.nvtx,
  [RangeKind.load]: SpanKind.load,
  [RangeKind.compile]: SpanKind.compile,
  [RangeKind.forward]: SpanKind.forward,
  [RangeKind.backward]: SpanKind.backward,
  [RangeKind.optimizer]: SpanKind.optimizer,
};

export function spanKindOfRange(kind: number): number {
  return OF_RANGE[kind] ?? SpanKind.range;
}
