"""Calls of CuPy and PyTorch whose kernels must leave alone what they are said to read.

Prints as JSON what changes although it is only read, and what is new and read before a write, and
to stderr the kernels with unknown modes. The first argument is the library: ``cupy`` or ``torch``.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import gpuviz
from tests.gpu.torch_calls import calls_of_torch

Call = Callable[[], Any]
TO_HOST = 2  # cudaMemcpyDeviceToHost

RAW = """
extern "C" __global__ void add_to(const float* __restrict__ a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] += a[i];
}
extern "C" __global__ void fill(float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = 3;
}
extern "C" __global__ void hidden(const float* a, float* b) {
    float* c = b;
    c[threadIdx.x] = a[threadIdx.x];
}
"""


def calls(cp: Any) -> dict[str, Call]:
    """Return calls by name; each uses arrays that exist before it."""
    import cupyx.scipy.ndimage as ndi
    from cupyx.scipy import sparse

    random = cp.random.default_rng(1)
    x = random.standard_normal(1 << 14, dtype=cp.float32)
    y = random.standard_normal(1 << 14, dtype=cp.float32)
    square = random.standard_normal((128, 128), dtype=cp.float32)
    whole = cp.arange(1 << 14) % 97
    places = cp.arange(0, 1 << 14, 3)
    csr = sparse.random(500, 500, 0.05, format="csr", dtype=cp.float64, random_state=1)
    vector = cp.ones(500)
    spectrum = cp.fft.rfft(x)
    raw = cp.RawModule(code=RAW)
    axpy = cp.ElementwiseKernel("T a, T b", "T c", "c = 2 * a + b", "axpy_of_test")
    change = cp.ElementwiseKernel("T a", "T c", "c += a", "change_of_test")
    scatter = cp.ElementwiseKernel("int64 p", "raw T c", "c[p] = 1", "scatter_of_test")
    squares = cp.ReductionKernel("T a", "T s", "a * a", "a + b", "s = a", "0", "squares_of_test")
    fused = cp.fuse(kernel_name="fused_of_test")(lambda a, b: a * b + a)
    grid, block = (64,), (256,)
    return {
        "add": lambda: x + y,
        "add in place": lambda: cp.add(x, 1, out=y),
        "take": lambda: x[places],
        "put": lambda: x.__setitem__(places, 0),
        "slice": lambda: x.__setitem__(slice(0, 100), 5),
        "scatter": lambda: cp.add.at(x, places, 1.0),
        "sum": x.sum,
        "sum of rows": lambda: square.sum(axis=1),
        "argmin": lambda: square.argmin(axis=1),
        "variance": x.var,
        "where": lambda: cp.where(x > 0, x, y),
        "nonzero": lambda: cp.nonzero(x > 1),
        "sort": lambda: cp.sort(x),
        "sort in place": y.sort,
        "argsort": lambda: cp.argsort(x),
        "lexsort": lambda: cp.lexsort(cp.stack([x, y])),
        "cumsum": lambda: cp.cumsum(x),
        "unique": lambda: cp.unique(whole),
        "bincount": lambda: cp.bincount(whole),
        "histogram": lambda: cp.histogram(x, bins=30),
        "concatenate": lambda: cp.concatenate([x, y]),
        "transpose": lambda: cp.ascontiguousarray(square.T),
        "median filter": lambda: ndi.median_filter(square, size=3),
        "gaussian filter": lambda: ndi.gaussian_filter(square, 2),
        "label": lambda: ndi.label(square > 1),
        "normal": lambda: cp.random.standard_normal(1000, dtype=cp.float32),
        "new generator": lambda: cp.random.default_rng(3),
        "normal by a generator": lambda: random.standard_normal(1000, dtype=cp.float32),
        "rfft": lambda: cp.fft.rfft(x),
        "fft of a prime length": lambda: cp.fft.fft(spectrum[:4099]),
        "rfft of rows": lambda: cp.fft.rfft(square),
        "irfft of its spectrum": lambda: cp.fft.irfft(spectrum),
        "irfft": lambda: cp.fft.irfft(x.astype(cp.complex64)),
        "fft": lambda: cp.fft.fft(square),
        "matrix product": lambda: square @ square,
        "dot": lambda: x @ y,
        "solve": lambda: cp.linalg.solve(square, square),
        "sparse product": lambda: csr @ vector,
        "sparse transpose": csr.T.tocsr,
        "axpy": lambda: axpy(x, y),
        "change": lambda: change(x, y),
        "scatter kernel": lambda: scatter(places, y),
        "squares": lambda: squares(x),
        "fused": lambda: fused(x, y),
        "raw": lambda: raw.get_function("add_to")(grid, block, (x, y, x.size)),
        "raw fill": lambda: raw.get_function("fill")(grid, block, (y, y.size)),
        "raw, hidden": lambda: raw.get_function("hidden")((1,), (256,), (x, y)),
    }


def touches(recording):
    """Return the block, mode and kernel of each touch, in the order of the launches."""
    strings = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    kernels = {
        row["correlation"]: strings.get(row["name"], "")
        for row in recording.table("activities").to_pylist()
    }
    return [
        (row["block"], row["mode"], kernels.get(row["correlation"], ""))
        for row in recording.table("launch_blocks").to_pylist()
    ]


def changed_blocks(cp, call, snapshot):
    """Return whether each block that lives before a call changes in it, and its recording."""

    def contents():
        cp.cuda.Device().synchronize()
        found = {}
        for segment in snapshot():
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    held = np.empty(block["size"], np.uint8)
                    address = block["address"]
                    cp.cuda.runtime.memcpy(held.ctypes.data, address, held.nbytes, TO_HOST)
                    found[address] = held.tobytes()
        return found

    before = contents()
    with gpuviz.record(stacks=False) as recorder:
        result = call()
        cp.cuda.Device().synchronize()
    after = contents()
    del result
    changed = {block: after.get(block) != held for block, held in before.items()}
    return changed, recorder.recording


def has_other_writers(recording, block):
    """Return whether copies or memsets may have written to a block; they are not told which."""
    del block
    kinds = recording.table("activities")["kind"].cast("string").to_pylist()
    return "memcpy" in kinds or "memset" in kinds


def main(library: str) -> None:
    import cupy as cp

    if library == "torch":
        import torch

        programs, snapshot = calls_of_torch(torch), torch.cuda.memory_snapshot
    else:
        cp.cuda.set_allocator(gpuviz.malloc)
        programs, snapshot = calls(cp), gpuviz.memory_snapshot
    with gpuviz.record(stacks=False):
        for call in programs.values():
            call()
    changed_though_read, read_first = [], []
    unknown: Counter[str] = Counter()
    seen = 0
    for name, call in programs.items():
        changed, recording = changed_blocks(cp, call, snapshot)
        found = touches(recording)
        seen += len(found)
        unknown.update(kernel[:100] for _, mode, kernel in found if mode == "unknown")
        for block, is_changed in changed.items():
            modes = {mode for at, mode, _ in found if at == block}
            if is_changed and modes == {"read"}:
                changed_though_read.append((name, [each for each in found if each[0] == block]))
        firsts = {block: (mode, kernel) for block, mode, kernel in reversed(found)}
        read_first += [
            (name, kernel)
            for block, (mode, kernel) in firsts.items()
            if block not in changed and mode == "read" and not has_other_writers(recording, block)
        ]
    print(f"{sum(unknown.values())} of {seen} touches unknown", *unknown.most_common(40),
          sep="\n", file=sys.stderr)  # fmt: skip
    print(json.dumps({"changed though read": changed_though_read, "read first": read_first}))


if __name__ == "__main__":
    main(*sys.argv[1:] or ["cupy"])
