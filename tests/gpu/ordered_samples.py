"""Programs without a hazard, like the examples of CuPy."""

import threading
from typing import Any

import cupy as cp
import cupyx
import cupyx.scipy.fft
import cupyx.scipy.sparse
import numpy as np

from tests.gpu.ordered_streams import N, streams, wait

_MULTIPLY = cp.RawKernel(
    r"""
extern "C" __global__ void multiply(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        left[y][x] = a[row * n + tile + x];
        right[y][x] = b[(tile + y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
""",
    "multiply",
)
_MOVE = cp.RawKernel(
    r"""
struct Particle { float place, speed; int hits; };
extern "C" __global__ void move(Particle* particles, float step, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle& it = particles[i];
    it.place += step * it.speed;
    if (it.place < 0 || it.place > 1) { it.speed = -it.speed; it.hits++; }
}
""",
    "move",
)
_CALL = cp.ElementwiseKernel(
    "float32 price, float32 strike, float32 years, float32 rate, float32 risk",
    "float32 value",
    """
    float spread = risk * sqrtf(years);
    float d = (logf(price / strike) + (rate + risk * risk / 2) * years) / spread;
    value = price * normcdff(d) - strike * expf(-rate * years) * normcdff(d - spread)
    """,
    "call_option",
)
_PATH = cp.ElementwiseKernel(
    "float32 draw, float32 drift, float32 spread",
    "float32 price",
    "price *= expf(drift + spread * draw)",
    "advance_path",
)


def gemm(n=512):
    a, b = cp.random.random((2, n, n), dtype=cp.float32)
    c = cp.empty((n, n), cp.float32)
    _MULTIPLY((n // 16, n // 16), (16, 16), (a, b, c, n))
    return c.get()


def kmeans(clusters=8, steps=10):
    points = cp.random.random((N // 8, 2), dtype=cp.float32)
    centers = points[:clusters].copy()
    for _ in range(steps):
        nearest = ((points[:, None] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)
        for cluster in range(clusters):
            inside = (nearest == cluster)[:, None]
            centers[cluster] = cp.where(inside, points, 0).sum(axis=0) / inside.sum()
    return centers.get()


def black_scholes():
    price = cp.random.uniform(5, 30, N, dtype=cp.float32)
    strike = cp.random.uniform(1, 100, N, dtype=cp.float32)
    years = cp.random.uniform(0.25, 10, N, dtype=cp.float32)
    return float(_CALL(price, strike, years, 0.02, 0.3).mean())


def monte_carlo(steps=20):
    price = cp.full(N, 100, cp.float32)
    for _ in range(steps):
        draw = cp.random.standard_normal(N, dtype=cp.float32)
        _PATH(draw, 0.0005, 0.02, price)
    return float(cp.maximum(price - 100, 0).mean())


def conjugate_gradient(n=512, steps=20):
    half = cp.random.random((n, n))
    matrix, right = half @ half.T + n * cp.eye(n), cp.ones(n)
    x = cp.zeros(n)
    rest = right - matrix @ x
    direction, size = rest.copy(), rest @ rest
    for _ in range(steps):
        product = matrix @ direction
        step = size / (direction @ product)
        x += step * direction
        rest -= step * product
        size, before = rest @ rest, size
        direction = rest + size / before * direction
    return x.get()


def custom_struct(n=10_000):
    kind = np.dtype([("place", np.float32), ("speed", np.float32), ("hits", np.int32)])
    host = np.zeros(n, kind)
    host["speed"] = np.linspace(-1, 1, n)
    particles = cp.asarray(host.view(np.uint8))
    for _ in range(10):
        _MOVE((-(-n // 256),), (256,), (particles, np.float32(0.1), n))
    return particles.get().view(kind)


def stream_threads(count=4):
    results: list[Any] = [None] * count
    lanes = streams(count)

    def work(number: int) -> None:
        with lanes[number]:
            x = cp.full(N, number, cp.float32)
            for _ in range(5):
                x = x * 2 + 1
            results[number] = x.sum().get(stream=lanes[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return results


def stream_cublas(count=3, n=512):
    inputs = [cp.random.random((n, n)) for _ in range(count)]
    results = []
    for stream, x in zip(streams(count), inputs, strict=True):
        with stream:
            results.append(x @ x)
    wait()
    return [each.get() for each in results]


def stream_cufft(count=3, n=1 << 16):
    """With a plan for each stream: CuPy's cached plan would be shared by all."""
    inputs = [cp.random.random(n) + 0j for _ in range(count)]
    results, plans = [], []
    for stream, x in zip(streams(count), inputs, strict=True):
        with stream:
            plans.append(cupyx.scipy.fft.get_fft_plan(x))
            results.append(cupyx.scipy.fft.fft(x, plan=plans[-1]))
    wait()
    return [each.get() for each in results]


def stream_curand(count=3):
    results, generators = [], []
    for number, stream in enumerate(streams(count)):
        with stream:
            generators.append(cp.random.RandomState(number))
            results.append(generators[-1].standard_normal(N, dtype=cp.float32))
    wait()
    return [float(each.mean()) for each in results]


def stream_event():
    x = cp.ones(N, cp.float32)
    writer, reader = streams(2)
    done = cp.cuda.Event(disable_timing=True)
    with writer:
        x *= 3
        done.record(writer)
    reader.wait_event(done)
    with reader:
        y = x + 1
    reader.synchronize()
    return y.get()


def stream_map_reduce(count=4):
    parts = cp.random.random((count, N), dtype=cp.float32)
    *lanes, last = streams(count + 1)
    partial = []
    for stream, part in zip(lanes, parts, strict=True):
        with stream:
            partial.append((part * part).sum())
        last.wait_event(stream.record())
    with last:
        total = cp.stack(partial).sum()
    wait()
    return float(total)


def stream_memcpy():
    source, sink = cupyx.empty_pinned(N, np.float32), cupyx.empty_pinned(N, np.float32)
    source[:] = 1
    (stream,) = streams(1)
    with stream:
        x = cp.empty(N, cp.float32)
        x.set(source, stream=stream)
        x += 1
        x.get(stream=stream, out=sink, blocking=False)
    stream.synchronize()
    return sink.copy()


def stream_pipeline(chunks=6):
    """One stream copies chunks in, another works on them; events in both directions."""
    source = cupyx.empty_pinned((chunks, N), np.float32)
    source[:] = 1
    buffers = [cp.empty(N, cp.float32) for _ in range(2)]
    total = cp.zeros(N, cp.float32)
    copies, compute = streams(2)
    used: list[Any] = [None, None]
    for chunk in range(chunks):
        place = chunk % 2
        if used[place] is not None:
            copies.wait_event(used[place])
        buffers[place].set(source[chunk], stream=copies)
        compute.wait_event(copies.record())
        with compute:
            total += buffers[place]
        used[place] = compute.record()
    wait()
    return float(total.sum())
