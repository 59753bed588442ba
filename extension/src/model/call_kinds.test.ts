import assert from "node:assert/strict";
import { test } from "node:test";

import { CallKind, callKindOfName } from "./call_kinds.ts";

test("what a CUDA call does is told by its name", () => {
  const kinds: Readonly<Record<string, number>> = {
    cuMemAlloc_v2: CallKind.allocation,
    cuMemAllocAsync: CallKind.other,
    cuMemMap: CallKind.allocation,
    cudaMallocHost: CallKind.allocation,
    cuStreamSynchronize_ptsz: CallKind.synchronize,
    cudaDeviceSynchronize: CallKind.synchronize,
    cuEventQuery: CallKind.query,
    cuMemcpyHtoD_v2: CallKind.memcpy,
    cuMemcpyDtoD_v2: CallKind.other,
    cuMemcpyHtoDAsync_v2: CallKind.other,
    cudaMemcpy: CallKind.memcpy,
    cuLaunchKernel: CallKind.other,
  };

  for (const [name, kind] of Object.entries(kinds)) {
    assert.equal(callKindOfName(name), kind, name);
  }
});
