"""Programs without a hazard: CuPy's kinds of examples, its libraries, and PyTorch on CuPy's memory.

Each waits for the device before its arrays are freed, unless all its work is on one stream.
"""

import importlib.util
import threading
from collections.abc import Callable
from typing import Any

import cupy as cp
import cupyx
import cupyx.scipy.fft
import cupyx.scipy.sparse
import numpy as np

N = 1 << 20

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
_NORM = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm_of_example")


def wait() -> None:
    cp.cuda.Device().synchronize()


def streams(count: int) -> list[Any]:
    """Return streams without implicit order; what was launched before is complete."""
    wait()
    return [cp.cuda.Stream(non_blocking=True) for _ in range(count)]


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


def reuse_after_wait():
    """Free an array that another stream used, after its own stream waited."""
    first, second = streams(2)
    with first:
        x = cp.full(N, 5, cp.float32)
    second.wait_event(first.record())
    with second:
        y = x + 1
    first.wait_event(second.record())
    del x
    with first:
        z = cp.full(N, 9, cp.float32)
    wait()
    return float(y[0]), float(z[0])


def legacy_and_blocking():
    blocking = cp.cuda.Stream()
    x = cp.zeros(N, cp.float32)
    with blocking:
        x += 5
    y = x + 1
    wait()
    return float(y[0])


class _Other:
    """An array of a library that tells its memory and stream by the protocol."""

    def __init__(self, array: Any, stream: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": stream.ptr}


def interoperability():
    producer, consumer = streams(2)
    with producer:
        x = cp.full(N, 2, cp.float32)
    with consumer:
        y = cp.asarray(_Other(x, producer)) * 2
    wait()
    return float(y[0])


def reductions_and_sorts():
    """CUB, fused kernels and our own reduction."""
    x = cp.random.random(N, dtype=cp.float32)
    parts = [x.sum(), x.max(), _NORM(x), cp.cumsum(x)[-1], cp.sort(x)[0], cp.argsort(x)[0]]
    whole = cp.arange(N) % 97
    parts += [cp.unique(whole)[-1], cp.bincount(whole)[0], cp.histogram(x, bins=20)[0][0]]
    return [float(each) for each in parts]


def solvers(n=128):
    """CuSOLVER and cuBLAS."""
    half = cp.random.random((n, n))
    matrix = half @ half.T + n * cp.eye(n)
    x = cp.linalg.solve(matrix, cp.ones(n))
    cp.linalg.svd(matrix)
    cp.linalg.qr(matrix)
    cp.linalg.eigh(matrix)
    cp.linalg.cholesky(matrix)
    cp.linalg.inv(matrix)
    return x.get()


def sparse(n=20_000):
    """CuSPARSE."""
    from cupyx.scipy.sparse.linalg import cg

    ones = cp.ones(n)
    matrix = cupyx.scipy.sparse.diags([ones[1:], 4 * ones, ones[1:]], [-1, 0, 1], format="csr")
    dense = matrix @ cp.ones((n, 4))
    square = matrix @ matrix
    x, _ = cg(matrix, ones, maxiter=10)
    return float(dense.sum()), square.nnz, float(x[0])


def transforms(n=256):
    """CuFFT, of several ranks and kinds."""
    x = cp.random.random((n, n))
    spectrum = cp.fft.rfft2(x)
    back = cp.fft.irfft2(spectrum)
    return float(abs(back - x).max()), cp.fft.fft(x, axis=0).get()


def libraries_on_two_streams(n=256):
    """Each stream has its own arrays, and takes the other's after an event."""
    first, second = streams(2)
    with first:
        a = cp.random.RandomState(1).random_sample((n, n)) + n * cp.eye(n)
        x = cp.linalg.solve(a, cp.ones(n))
    second.wait_event(first.record())
    with second:
        matrix = cupyx.scipy.sparse.csr_matrix(a)
        y = matrix @ x
        s = cp.sort(y)
    wait()
    return s.get()


def _train(batches: Any, before: Callable[[int], None], after: Callable[[int], None]) -> float:
    """Train a small network whose parameters are CuPy's arrays."""
    import torch

    torch.manual_seed(0)
    shapes = ((256, 64), (256,), (1, 256), (1,))
    arrays = [cp.random.standard_normal(each, dtype=cp.float32) * 0.1 for each in shapes]
    wait()
    w1, b1, w2, b2 = parameters = [torch.from_dlpack(each).requires_grad_() for each in arrays]
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    for step, batch in enumerate(batches):
        before(step)
        x = torch.from_dlpack(batch)
        hidden = torch.relu(torch.nn.functional.linear(x, w1, b1))
        loss = (torch.nn.functional.linear(hidden, w2, b2) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after(step)
    wait()
    return loss.item()


def torch_training(steps=8):
    batches = [cp.random.random((512, 64), dtype=cp.float32) for _ in range(steps)]
    wait()
    return _train(batches, lambda _: None, lambda _: None)


def torch_training_on_two_streams(steps=8):
    """A stream fills two batches in turn; PyTorch's stream trains on them."""
    import torch

    buffers = [cp.empty((512, 64), cp.float32) for _ in range(2)]
    source = cupyx.empty_pinned((steps, 512, 64), np.float32)
    source[:] = np.random.default_rng(1).random(source.shape)
    copies, compute = streams(2)
    used: list[Any] = [None, None]

    def fill(step: int) -> None:
        if used[step % 2] is not None:
            copies.wait_event(used[step % 2])
        buffers[step % 2].set(source[step], stream=copies)
        compute.wait_event(copies.record())

    def note(step: int) -> None:
        used[step % 2] = compute.record()

    with torch.cuda.stream(torch.cuda.ExternalStream(compute.ptr)), compute:
        return _train([buffers[step % 2] for step in range(steps)], fill, note)


PROGRAMS: dict[str, Callable[[], Any]] = {
    each.__name__: each
    for each in (
        gemm,
        kmeans,
        black_scholes,
        monte_carlo,
        conjugate_gradient,
        custom_struct,
        stream_threads,
        stream_cublas,
        stream_cufft,
        stream_curand,
        stream_event,
        stream_map_reduce,
        stream_memcpy,
        stream_pipeline,
        reuse_after_wait,
        legacy_and_blocking,
        interoperability,
        reductions_and_sorts,
        solvers,
        sparse,
        transforms,
        libraries_on_two_streams,
    )
}
if importlib.util.find_spec("torch"):
    PROGRAMS |= {each.__name__: each for each in (torch_training, torch_training_on_two_streams)}
