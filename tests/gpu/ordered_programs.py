"""Programs without a hazard: CuPy's kinds of examples, its libraries, and PyTorch on CuPy's memory.

Each waits for the device before its arrays are freed, unless all its work is on one stream.
"""

import importlib.util
from collections.abc import Callable
from typing import Any

import cupy as cp
import cupyx
import cupyx.scipy.fft
import cupyx.scipy.sparse
import numpy as np

from tests.gpu.ordered_samples import (
    black_scholes,
    conjugate_gradient,
    custom_struct,
    gemm,
    kmeans,
    monte_carlo,
    stream_cublas,
    stream_cufft,
    stream_curand,
    stream_event,
    stream_map_reduce,
    stream_memcpy,
    stream_pipeline,
    stream_threads,
)
from tests.gpu.ordered_streams import N, streams, wait

_NORM = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm_of_example")


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
