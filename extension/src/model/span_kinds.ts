import { ActivityKind, CopyKind, RANGE_KINDS } from "../wire/codes.ts";
import { codesOf } from "../base/codes.ts";
import type { Activities } from "./activities.ts";

function inTable<const Table extends string>(
  table: Table,
): (text: string) => readonly [text: string, table: Table] {
  return (text) => [text, table];
}

const activity = inTable("activities");
const hostRange = inTable("ranges");

/**
 * What a span in a lane is, and the table of `GpuActivities` that its source is a row of.
 *
 * The order is that of the palette of lanes.
 */
const KINDS = {
  kernel: activity("kernel"),
  graph: activity("graph launch"),
  hostToDevice: activity("copy host to device"),
  deviceToHost: activity("copy device to host"),
  deviceToDevice: activity("copy device to device"),
  otherCopy: activity("other copy"),
  memset: activity("memset"),
  streamRange: activity("range on a stream"),
  cell: hostRange("cell"),
  range: hostRange("range"),
  nvtx: hostRange("NVTX range"),
  wait: ["host waits", "hostWaits"],
  call: ["CUDA call", "apiCalls"],
  idle: activity("idle gap"),
  overhead: ["overhead of CUDA and CUPTI", "overheads"],
  allocation: ["CUDA allocates memory", "memoryOperations"],
  release: ["CUDA releases memory", "memoryOperations"],
  load: hostRange("kernels loaded"),
  compile: hostRange("kernels compiled"),
  hostCode: ["host code", "hostSamples"],
  hostPause: ["host code that waits", "hostSamples"],
  collection: ["garbage collection", "hostSamples"],
  forward: hostRange("forward pass"),
  backward: hostRange("backward pass"),
  optimizer: hostRange("optimizer step"),
} as const;
type Kind = keyof typeof KINDS;
export type SpanTable = (typeof KINDS)[Kind][1];
export const SPAN_KINDS = Object.values(KINDS).map(([text]) => text);
export const SpanKind = codesOf(Object.keys(KINDS) as Kind[]);
const TABLES = Object.values(KINDS).map(([, table]) => table);

export function tableOfSpan(kind: number): SpanTable {
  return TABLES[kind] ?? "activities";
}

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

/** The kind of span of a range; they have the same names. */
export function spanKindOfRange(kind: number): number {
  return SpanKind[RANGE_KINDS[kind] ?? "range"];
}
