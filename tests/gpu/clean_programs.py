"""Ten short CuPy programs as one should write them, each with tens of milliseconds of GPU work."""

import cupy as cp
import cupyx
import cupyx.scipy.fft
import cupyx.scipy.sparse
import numpy as np

N = 1 << 25
STEP = cp.ElementwiseKernel(
    "float32 x, float32 a", "float32 y", "y = a * x * x + (1 - a) * y", "clean_step"
)
SMOOTH = cp.RawKernel(
    r"""
extern "C" __global__ void smooth(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float left = x[i > 0 ? i - 1 : 0], right = x[i < n - 1 ? i + 1 : n - 1];
        y[i] = 0.25f * left + 0.5f * x[i] + 0.25f * right;
    }
}
""",
    "smooth",
)


def elementwise(steps=100):
    x = cp.arange(N, dtype=cp.float32)
    y = cp.zeros(N, dtype=cp.float32)
    for step in range(steps):
        STEP(x, 1 / (step + 1), y)
    return float(y[-1])


def reduction(steps=100):
    x = cp.arange(N, dtype=cp.float32)
    largest = cp.empty(steps, dtype=cp.float32)
    for step in range(steps):
        cp.max(x, out=largest[step : step + 1].reshape(()))
    return largest.get()


def product(steps=20, n=4096):
    a = cp.ones((n, n), dtype=cp.float32)
    b = cp.ones((n, n), dtype=cp.float32)
    c = cp.empty((n, n), dtype=cp.float32)
    for _ in range(steps):
        cp.matmul(a, b, out=c)
    return float(c[0, 0])


def spectrum(steps=30, n=4096):
    x = cp.ones((n, n), dtype=cp.complex64)
    for _ in range(steps):
        x = cupyx.scipy.fft.fft(x, axis=1, norm="ortho", overwrite_x=True)
    return complex(x[0, 0])


def sort(steps=20):
    x = cp.arange(N, dtype=cp.float32)
    for _ in range(steps):
        cp.negative(x, out=x)
        x.sort()
    return float(x[0])


def samples(steps=50):
    random = cp.random.default_rng(1)
    x = cp.empty(N, dtype=cp.float32)
    means = cp.empty(steps, dtype=cp.float32)
    for step in range(steps):
        random.random(dtype=cp.float32, out=x)
        cp.mean(x, out=means[step : step + 1].reshape(()))
    return means.get()


def pipeline(chunks=16, n=1 << 23):
    """Double buffering: each stream copies its chunk in, works on it and copies it out."""
    source, sink = (
        cupyx.empty_pinned((chunks, n), np.float32),
        cupyx.empty_pinned(chunks, np.float32),
    )
    source[:] = 1
    lanes = []
    for _ in range(2):
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            buffers = cp.empty(n, cp.float32), cp.zeros(n, cp.float32)
        lanes.append((stream, *buffers))
    for chunk in range(chunks):
        stream, x, y = lanes[chunk % 2]
        with stream:
            x.set(source[chunk], stream=stream)
            for _ in range(20):
                STEP(x, 0.5, y)
            y[:1].get(stream=stream, out=sink[chunk : chunk + 1], blocking=False)
    for stream, *_ in lanes:
        stream.synchronize()
    return sink


def stencil(steps=100):
    x = cp.arange(N, dtype=cp.float32)
    y = cp.empty_like(x)
    for _ in range(steps):
        SMOOTH((4096,), (256,), (x, y, N))
        x, y = y, x
    return float(x[0])


def in_place(steps=50):
    x = cp.arange(N, dtype=cp.float32)
    y = cp.empty_like(x)
    for _ in range(steps):
        cp.sin(x, out=y)
        cp.multiply(x, y, out=y)
        cp.add(x, y, out=x)
    return float(x[-1])


def sparse(steps=50, n=1 << 22):
    ones = cp.ones(n, dtype=cp.float32)
    matrix = cupyx.scipy.sparse.diags([ones[1:], ones[1:]], [-1, 1], format="csr")
    x = ones
    for _ in range(steps):
        x = matrix @ x
    return float(x[n // 2])


PROGRAMS = {
    each.__name__: each
    for each in (
        elementwise,
        reduction,
        product,
        spectrum,
        sort,
        samples,
        pipeline,
        stencil,
        in_place,
        sparse,
    )
}
