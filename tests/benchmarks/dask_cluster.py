"""Cost of recording the workers of a Dask cluster, and of fetching what they recorded.

With a GPU, four workers compute with CuPy on it; without one, each has a simulated GPU. The
clusters of both cases are new and take turns: CUPTI slows down what comes after it in a process.
"""

import functools
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import gpuviz
from tests.benchmarks.__main__ import has_gpu

WORKERS = 4
TASKS = 400
STEPS = 10
CLUSTERS = 3
ROUNDS = 4
FETCHED = 8
FETCHED_BYTES = 20_000_000
# Pairs of an allocation and a free that give so many bytes.
PAIRS = 1_700_000

Row = tuple[str, str, str, bool]


@functools.cache
def gpu() -> gpuviz.SimulatedGPU:
    return gpuviz.SimulatedGPU(4 << 30)


@functools.cache
def fast_gpu() -> gpuviz.SimulatedGPU:
    return gpuviz.SimulatedGPU(4 << 30, real_time=False)


def on_cupy(number: int) -> float:
    """Multiply matrices, for about 5 ms."""
    import cupy

    x = cupy.full((2048, 2048), number, cupy.float32)
    for _ in range(STEPS):
        x = (x @ x) / 2048 + 1
    return float(x.sum())


def on_simulated_gpu(number: int) -> float:
    """Do the same on a GPU whose time is that of the host."""
    x = gpu().empty(16 << 20)
    for _ in range(STEPS):
        product = gpu().empty(16 << 20)
        gpu().launch("gemm", reads=[x], writes=[product], duration=4e-4)
        x = gpu().empty(16 << 20)
        gpu().launch("divide", reads=[product], writes=[x], duration=1e-4)
    gpu().synchronize()
    return float(number)


def many_events(number: int) -> int:
    device = fast_gpu()
    for at in range(PAIRS):
        device.empty(((at * 7919 + number) % 4099 + 1) << 9)
    return number


def rows() -> Iterator[Row]:
    task = on_cupy if has_gpu() else on_simulated_gpu
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(CLUSTERS):
        for is_recorded, each in seconds.items():
            each.append(computation_s(task, is_recorded))
    shortest = {is_recorded: min(each) for is_recorded, each in seconds.items()}
    sys.stderr.write(f"seconds of {TASKS} tasks, plain and recorded: {seconds}\n")
    ratio = shortest[True] / shortest[False]
    what = f"Dask, {TASKS} tasks on {WORKERS} workers, {'CuPy' if has_gpu() else 'simulated GPUs'}"
    yield f"{what}, recorded", "1.02x", f"{ratio:.3f}x", ratio <= 1.02
    fetched_s, size = fetch_s()
    what = f"fetch of {FETCHED} x {size / FETCHED / 1e6:.0f} MB"
    yield what, "5 s", f"{fetched_s:.1f} s", fetched_s <= 5 and size >= FETCHED * FETCHED_BYTES


def cluster(workers: int, folder: str):  # type: ignore[no-untyped-def] # Dask has no types
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=":0",
        local_directory=folder,
        silence_logs=logging.ERROR,
    )


def computation_s(task, is_recorded: bool) -> float:  # type: ignore[no-untyped-def]
    """Return the median seconds of a computation in a new cluster."""
    from distributed import Client

    with (
        tempfile.TemporaryDirectory() as folder,
        cluster(WORKERS, folder) as local,
        Client(local) as client,
    ):

        def computed() -> float:
            began = time.perf_counter()
            client.gather(client.map(task, range(TASKS), pure=False))
            return time.perf_counter() - began

        options = {} if task is on_cupy else {"device": gpu}
        with gpuviz.dask.record(Path(folder, "run"), **options) if is_recorded else nullcontext():
            computed()
            return statistics.median(computed() for _ in range(ROUNDS))


def fetch_s() -> tuple[float, int]:
    """Return the seconds that fetching the recordings takes, and their bytes."""
    from distributed import Client

    from gpuviz.dask.cluster_recording import workers_of
    from gpuviz.dask.plugin import PLUGIN

    with (
        tempfile.TemporaryDirectory() as folder,
        cluster(FETCHED, folder) as local,
        Client(local) as client,
    ):
        with gpuviz.dask.record(Path(folder, "run"), device=fast_gpu) as recorded:
            workers = list(workers_of(client))
            client.gather(
                [client.submit(many_events, n, workers=[one]) for n, one in enumerate(workers)]
            )
            # The workers finish their files, each at its own pace.
            client.unregister_worker_plugin(PLUGIN)
            began = time.perf_counter()
        return time.perf_counter() - began, sum(path.stat().st_size for path in recorded.paths)
