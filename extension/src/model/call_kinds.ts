import { ActivityKind } from "./activities.ts";
import type { Work } from "./work.ts";

/** What a CUDA call does to the thread that makes it. */
export const CallKind = {
  other: 0,
  allocation: 1,
  synchronize: 2,
  query: 3,
  memcpy: 4,
  pageableMemcpy: 5,
} as const;

// The same rules as in gpuviz/analysis/calls.py.
const VERSION = /(_v\d+|_ptsz|_ptds)+$/;
const ALLOCATION =
  /^(cuMem(Alloc|Free|HostAlloc|HostRegister|HostUnregister)|cuMem(Map|Unmap|Create|Release|SetAccess)$|cuda(Malloc|Free|HostAlloc|HostRegister|HostUnregister))/;
const SYNCHRONIZE = /^(cu(Ctx|Stream|Event)|cuda(Device|Thread|Stream|Event))Synchronize$/;
const QUERY = /^cu(da)?(Stream|Event)Query$/;
const COPY = /^cu(da)?Memcpy(?!.*(Async|DtoD|DtoA|AtoD|AtoA|Peer))/;
const DEVICE_TO_DEVICE = 3;
const PEER_TO_PEER = 5;

/** What a call of the driver or the runtime does, as far as its name tells. */
export function callKindOfName(name: string): number {
  const plain = name.replace(VERSION, "");
  if (ALLOCATION.test(plain) && !plain.includes("Async")) {
    return CallKind.allocation;
  }
  if (SYNCHRONIZE.test(plain)) {
    return CallKind.synchronize;
  }
  if (QUERY.test(plain)) {
    return CallKind.query;
  }
  return COPY.test(plain) ? CallKind.memcpy : CallKind.other;
}

/** The kind of each row of `ApiCalls`, by its name and by the copies that it made. */
export function callKinds(work: Work): Uint8Array<ArrayBuffer> {
  const { apiCalls, strings } = work;
  const { name, correlation } = apiCalls;
  const ofName = new Map<number, number>();
  const kinds = Uint8Array.from(name, (id) => {
    const kind = ofName.get(id) ?? callKindOfName(strings.get(id));
    ofName.set(id, kind);
    return kind;
  });
  const { onDevice, pageable } = correlationsOfCopies(work);
  kinds.forEach((kind, row) => {
    const id = correlation[row] ?? 0;
    const known = kind === CallKind.memcpy && onDevice.has(id) ? CallKind.other : kind;
    kinds[row] = known === CallKind.other && pageable.has(id) ? CallKind.pageableMemcpy : known;
  });
  return kinds;
}

interface CopyCorrelations {
  readonly onDevice: ReadonlySet<number>;
  readonly pageable: ReadonlySet<number>;
}

/** The calls of copies that no host memory takes part in, and of those of pageable memory. */
function correlationsOfCopies({ activities }: Work): CopyCorrelations {
  const onDevice = new Set<number>();
  const pageable = new Set<number>();
  const { kind, copyKind, correlation } = activities;
  for (let row = 0; row < activities.count; row += 1) {
    const id = correlation[row] ?? 0;
    if (kind[row] !== ActivityKind.memcpy || id === 0) {
      continue;
    }
    if (copyKind[row] === DEVICE_TO_DEVICE || copyKind[row] === PEER_TO_PEER) {
      onDevice.add(id);
    }
    if (activities.memoriesOf(row).includes("pageable")) {
      pageable.add(id);
    }
  }
  return { onDevice, pageable };
}
