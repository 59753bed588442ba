import { ActivityKind } from "./activities.ts";
import type { Work } from "./work.ts";

/** What a CUDA call does to the thread that makes it. */
export const CallKind = { other: 0, allocation: 1, blocking: 2, query: 3 } as const;

// The same rules as in gpuviz/analysis/calls.py.
const VERSION = /(_v\d+|_ptsz|_ptds)+$/;
const ALLOCATION =
  /^(cuMem(Alloc|Free|HostAlloc|HostRegister|HostUnregister)|cuMem(Map|Unmap|Create|Release|SetAccess)$|cuda(Malloc|Free|HostAlloc|HostRegister|HostUnregister))/;
const SYNCHRONIZE = /^((cu(Ctx|Stream|Event)|cuda(Device|Thread|Stream|Event))Synchronize)$/;
const QUERY = /^cu(da)?(Stream|Event)Query$/;
const COPY = /^cu(da)?Memcpy(?!.*(Async|DtoD|DtoA|AtoD|AtoA|Peer))/;
const ON_DEVICE: readonly string[] = ["device_to_device", "peer_to_peer"];

const MEMCPY = 4;

function kindOfName(fullName: string): number {
  const name = fullName.replace(VERSION, "");
  if (ALLOCATION.test(name) && !name.includes("Async")) {
    return CallKind.allocation;
  }
  if (SYNCHRONIZE.test(name)) {
    return CallKind.blocking;
  }
  if (QUERY.test(name)) {
    return CallKind.query;
  }
  return COPY.test(name) ? MEMCPY : CallKind.other;
}

/** The kind of each row of `ApiCalls`. */
export function callKinds({ activities, apiCalls, strings }: Work): Uint8Array<ArrayBuffer> {
  const onDevice = new Set<number>();
  const pageable = new Set<number>();
  const { kind, correlation } = activities;
  for (let row = 0; row < activities.count; row += 1) {
    if (kind[row] === ActivityKind.memcpy && correlation[row] !== 0) {
      if (ON_DEVICE.includes(activities.copyKindOf(row))) {
        onDevice.add(correlation[row] ?? 0);
      }
      if (activities.memoriesOf(row).includes("pageable")) {
        pageable.add(correlation[row] ?? 0);
      }
    }
  }
  const known = new Map<number, number>();
  const { name, correlation: callCorrelation } = apiCalls;
  return Uint8Array.from({ length: apiCalls.count }, (_, call) => {
    const id = name[call] ?? 0;
    const found = known.get(id) ?? kindOfName(strings.get(id));
    known.set(id, found);
    const copy = callCorrelation[call] ?? 0;
    if (found === MEMCPY && !onDevice.has(copy)) {
      return CallKind.blocking;
    }
    const isOther = found === MEMCPY || found === CallKind.other;
    return isOther ? (pageable.has(copy) ? CallKind.blocking : CallKind.other) : found;
  });
}
