"""Cost of an allocation through torch, Numba, cuda.core and RMM: theirs against gpuviz's.

Needs a GPU. torch cannot change its allocator back, so each case has processes of its own, in turn
with those of the library's own allocator; figures are the least of their medians.
"""

import importlib
import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext

from tests.benchmarks.cupy_allocation import DEPTH, Row, at_depth, ratio_row

NEEDS_GPU = True
SIZE = 1 << 20
PAIRS = 5_000
ROUNDS = 5
PROCESSES = 4
TIMEOUT_S = 120
MODULES = {"torch": "torch", "Numba": "numba_cuda", "cuda.core": "cuda.core", "RMM": "rmm"}
OWN, SHARED, RECORDED = "own", "shared", "recorded"


def pair_of(library: str) -> Callable[[], object]:
    """Return a function that allocates 1 MiB through a library and frees it."""
    if library == "torch":
        import torch

        torch.cuda.init()
        return lambda: torch.empty(SIZE, dtype=torch.uint8, device="cuda")
    if library == "Numba":
        from numba import cuda

        cuda.current_context()
        return lambda: cuda.current_context().memalloc(SIZE)
    if library == "cuda.core":
        from cuda.core import Device

        device = Device()
        device.set_current()
        stream = device.create_stream()
        return lambda: device.allocate(SIZE, stream=stream).close()
    import rmm

    # Every use of RMM's C++ is slow before CUDA's runtime has begun, as CuPy and cuDF begin it.
    base = rmm.mr.CudaMemoryResource()
    base.deallocate(base.allocate(256), 256)
    return lambda: rmm.DeviceBuffer(size=SIZE)


def install(library: str) -> None:
    """Put gpuviz's allocator under a library."""
    from gpuviz import allocators

    module = {"torch": "torch", "Numba": "numba", "cuda.core": "cuda_core", "RMM": "rmm"}[library]
    importlib.import_module(f"{allocators.__name__}.{module}").install()


def use_own(library: str) -> None:
    """Let a library cache as it does where people care for time."""
    if library == "RMM":
        import rmm

        rmm.reinitialize(pool_allocator=True)


def measured(library: str, case: str) -> float:
    """Return the median seconds of a pair in this process."""
    import gpuviz

    if case == OWN:
        use_own(library)
    else:
        install(library)
    pair = pair_of(library)

    def timed() -> float:
        began = time.perf_counter()
        for _ in range(PAIRS):
            pair()
        return (time.perf_counter() - began) / PAIRS

    seconds = []
    for _ in range(ROUNDS):
        with gpuviz.record(streams=False) if case == RECORDED else nullcontext():
            at_depth(DEPTH, timed)
            seconds.append(at_depth(DEPTH, timed))
    return statistics.median(seconds)


def seconds_of(library: str, case: str) -> float:
    program = "from tests.benchmarks import shared_pool as s; "
    done = subprocess.run(
        [sys.executable, "-c", f"{program}print(s.measured({library!r}, {case!r}))"],
        check=True,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    return float(done.stdout.splitlines()[-1])


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def rows() -> Iterator[Row]:
    """Measure everything; yield the rows of the table."""
    for library, module in MODULES.items():
        if not is_installed(module):
            sys.stderr.write(f"{library} is left out: it is not installed\n")
            continue
        cases = (OWN, SHARED, RECORDED) if library == "torch" else (OWN, SHARED)
        least = dict.fromkeys(cases, float("inf"))
        for _ in range(PROCESSES):
            for case in cases:
                least[case] = min(least[case], seconds_of(library, case))
        limit = 1.0 if library == "torch" else 1.2
        yield ratio_row(f"{library}, 1 MiB, not recording", limit, least[SHARED], least[OWN])
        if RECORDED in least:
            what = f"{library}, 1 MiB, recording, stacks {DEPTH} deep"
            yield ratio_row(what, 1.5, least[RECORDED], least[OWN])
    yield from graph_rows()


def graph_rows() -> Iterator[Row]:
    """Capture a graph of 100 kernels and launch it 1,000 times, under CuPy's pool and gpuviz's."""
    import cupy

    import gpuviz
    from tests.benchmarks.cupy_allocation import cupy_pool, interleaved

    stream = cupy.cuda.Stream(non_blocking=True)

    def compute(x: cupy.ndarray) -> cupy.ndarray:
        for _ in range(50):
            x = x * 2 + 1
        return x

    def of_cupy() -> float:
        x = cupy.ones(1 << 16, cupy.float32)
        compute(x)
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        with stream:
            stream.begin_capture()
            result = compute(x)
            graph = stream.end_capture()
        for _ in range(1000):
            graph.launch(stream)
        stream.synchronize()
        del result
        return time.perf_counter() - began

    def of_gpuviz() -> float:
        previous = cupy.cuda.get_allocator()
        cupy.cuda.set_allocator(gpuviz.malloc)
        try:
            x = cupy.ones(1 << 16, cupy.float32)
            compute(x)
            cupy.cuda.Device().synchronize()
            began = time.perf_counter()
            with gpuviz.graph(stream) as graph:
                result = compute(x)
            for _ in range(1000):
                graph.replay()
            stream.synchronize()
            del result
            return time.perf_counter() - began
        finally:
            cupy.cuda.set_allocator(previous)

    seconds = interleaved({"pool": (cupy_pool, of_cupy), "gpuviz": (nullcontext, of_gpuviz)})
    what = "graph of 100 kernels, captured and launched 1,000 times"
    yield ratio_row(what, 1.0, seconds["gpuviz"], seconds["pool"], unit="s")
