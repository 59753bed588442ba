"""Calls of CuPy and its libraries whose kernels must leave alone what they are said to read."""

from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]

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
        "rfft": lambda: cp.fft.rfft(x),
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
