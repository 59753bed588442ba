"""CuPy programs that wait for the host: for numbers, copies, launches and compilations."""

from functools import cache
from itertools import count

import cupy as cp
import cupyx
import numpy as np

FLOATS = 1 << 22


def scalars_in_a_loop() -> float:
    x, total = cp.ones(FLOATS, cp.float32), 0.0
    for _ in range(300):
        x *= np.float32(1.0001)
        total += float(x.sum())
    return total


def scalars_after_a_loop() -> float:
    # With `out=` CuPy's reductions by CUB copy their result by a further kernel.
    x, sums = cp.ones(FLOATS, cp.float32), []
    for _ in range(300):
        x *= np.float32(1.0001)
        sums.append(x.sum())
    return float(cp.stack(sums).get().sum())


def items_of_small_arrays() -> float:
    x, total = cp.ones(1 << 12, cp.float32), 0.0
    for _ in range(500):
        x = cp.sqrt(x + 1)
        total += x[0].item()
    return total


def items_after_a_loop() -> float:
    x, kept = cp.ones(1 << 12, cp.float32), []
    for _ in range(500):
        x = cp.sqrt(x + 1)
        kept.append(x[0])
    return float(cp.stack(kept).get().sum())


def until_it_converges() -> float:
    x, error = cp.ones(FLOATS, cp.float32), 1.0
    while error > 1e-3:
        x *= np.float32(0.98)
        error = float(x.max())
    return error


def masked_sums() -> cp.ndarray:
    x, total = cp.linspace(-1, 1, 1 << 24, dtype=cp.float32), cp.zeros((), cp.float32)
    for step in range(40):
        total += x[x > step / 40].sum()
    return total


def sums_of_where() -> cp.ndarray:
    x, total = cp.linspace(-1, 1, 1 << 24, dtype=cp.float32), cp.zeros((), cp.float32)
    for step in range(40):
        total += cp.where(x > step / 40, x, 0).sum()
    return total


def small_masks() -> cp.ndarray:
    x, total = cp.linspace(-1, 1, 1 << 14, dtype=cp.float32), cp.zeros((), cp.float32)
    for step in range(300):
        total += x[x > step / 300].sum()
    return total


def small_wheres() -> cp.ndarray:
    x, total = cp.linspace(-1, 1, 1 << 14, dtype=cp.float32), cp.zeros((), cp.float32)
    for step in range(300):
        total += cp.where(x > step / 300, x, 0).sum()
    return total


def uploads_of_pageable_memory() -> None:
    host, x, y = np.zeros(FLOATS, np.float32), cp.empty(FLOATS, cp.float32), cp.zeros(FLOATS)
    for step in range(40):
        host[0] = step
        x.set(host)
        y += x


def uploads_of_pinned_memory() -> None:
    host, x = cupyx.zeros_pinned(FLOATS, np.float32), cp.empty(FLOATS, cp.float32)
    y = cp.zeros(FLOATS)
    for step in range(40):
        host[0] = step
        x.set(host)
        y += x


@cache
def _batches() -> list[np.ndarray]:
    return [cupyx.zeros_pinned(FLOATS, np.float32) for _ in range(24)]


def copies_in_line() -> None:
    x, y = cp.empty(FLOATS, cp.float32), cp.zeros(FLOATS, cp.float32)
    stream = cp.cuda.Stream()
    with stream:
        for step, host in enumerate(_batches()):
            host[0] = step
            x.set(host, stream=stream)
            for _ in range(12):
                cp.add(y, x, out=y)
    stream.synchronize()


def copies_beside_kernels() -> None:
    buffers, y = [cp.empty(FLOATS, cp.float32) for _ in "ab"], cp.zeros(FLOATS, cp.float32)
    copying, computing = cp.cuda.Stream(), cp.cuda.Stream()
    free = [computing.record() for _ in "ab"]
    for step, host in enumerate(_batches()):
        host[0] = step
        x = buffers[step % 2]
        copying.wait_event(free[step % 2])
        x.set(host, stream=copying)
        computing.wait_event(copying.record())
        with computing:
            for _ in range(12):
                cp.add(y, x, out=y)
        free[step % 2] = computing.record()
    computing.synchronize()


def small_launches() -> None:
    x, y = cp.ones(1 << 12, cp.float32), cp.ones(1 << 12, cp.float32)
    for _ in range(1000):
        _small_step(x, y)


def small_launches_as_a_graph() -> None:
    x, y = cp.ones(1 << 12, cp.float32), cp.ones(1 << 12, cp.float32)
    with cp.cuda.Stream() as stream:
        stream.begin_capture()
        for _ in range(20):
            _small_step(x, y)
        graph = stream.end_capture()
        for _ in range(50):
            graph.launch(stream)
        stream.synchronize()


def _small_step(x: cp.ndarray, y: cp.ndarray) -> None:
    cp.add(x, y, out=y)
    cp.sqrt(y, out=y)
    cp.multiply(x, y, out=x)
    cp.minimum(x, y, out=x)


def elements_one_by_one() -> list[float]:
    x = cp.arange(1000, dtype=cp.float32)
    return [float(each) for each in x]


def elements_at_once() -> list[float]:
    x = cp.arange(1000, dtype=cp.float32)
    return x.tolist()


def sorted_on_the_host() -> None:
    values, x = np.random.default_rng(7).random(1 << 17), cp.ones(FLOATS, cp.float32)
    for step in range(30):
        values[step] = step
        x *= np.float32(np.sort(values)[step])


def sorted_on_the_gpu() -> None:
    values, x = cp.asarray(np.random.default_rng(7).random(1 << 17)), cp.ones(FLOATS, cp.float32)
    for step in range(30):
        values[step] = step
        x *= cp.sort(values)[step]


_versions = count()


def compiled_for_each_value() -> None:
    x, run = cp.ones(1 << 12, cp.float32), next(_versions)
    for step in range(12):
        source = f'extern "C" __global__ void scale(float* x) {{ x[0] *= {run}{step:03}.5f; }}'
        cp.RawKernel(source, "scale")((1,), (1,), (x,))


_SCALE = cp.RawKernel('extern "C" __global__ void scale(float* x, float f) { x[0] *= f; }', "scale")


def compiled_once() -> None:
    x, run = cp.ones(1 << 12, cp.float32), next(_versions)
    for step in range(12):
        _SCALE((1,), (1,), (x, np.float32(1000 * run + step + 0.5)))
