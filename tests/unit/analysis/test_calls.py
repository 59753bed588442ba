"""The kinds of CUDA calls by name."""

import pytest

from gpuviz.analysis.calls import kind_of_name
from gpuviz.data.codes import CallKind

NAMES = {
    CallKind.ALLOCATION: (
        *("cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemAllocManaged", "cuMemAllocHost_v2"),
        *("cuMemFree_v2", "cuMemFreeHost", "cuMemHostAlloc", "cuMemHostRegister_v2"),
        *("cuMemHostUnregister", "cuMemMap", "cuMemUnmap", "cuMemCreate", "cuMemRelease"),
        *("cuMemSetAccess", "cudaMalloc", "cudaMalloc_v3020", "cudaMallocManaged", "cudaFree"),
        *("cudaFreeHost", "cudaHostAlloc", "cudaHostRegister", "cudaMallocHost_v3020"),
    ),
    CallKind.SYNCHRONIZE: (
        *("cuCtxSynchronize", "cuCtxSynchronize_v2", "cuStreamSynchronize_ptsz"),
        *("cuEventSynchronize", "cudaDeviceSynchronize_v3020", "cudaStreamSynchronize_ptsz_v7000"),
    ),
    CallKind.QUERY: ("cuStreamQuery", "cuEventQuery", "cudaStreamQuery", "cudaEventQuery_v3020"),
    CallKind.MEMCPY: (
        *("cuMemcpy", "cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2_ptds", "cuMemcpy2D_v2", "cudaMemcpy"),
        *("cudaMemcpy_v3020", "cudaMemcpyToSymbol", "cuMemcpy3D_v2", "cuMemcpyAtoH_v2"),
    ),
    CallKind.OTHER: (
        *("cuMemAllocAsync", "cuMemAllocFromPoolAsync_ptsz", "cuMemFreeAsync", "cudaMallocAsync"),
        *("cudaFreeAsync", "cuMemcpyDtoHAsync_v2", "cudaMemcpyAsync_v3020", "cuMemcpyDtoD_v2"),
        *("cuMemcpyPeer", "cuLaunchKernel", "cuMemsetD8_v2", "cuStreamWaitEvent", ""),
        *("cuMemMapArrayAsync", "cuMemGetInfo_v2", "cuGraphLaunch", "cuMemcpy3DPeer"),
    ),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for kind, names in NAMES.items() for name in names],
)
def test_a_name_tells_what_a_call_does(name, kind):
    assert kind_of_name(name) == kind
