"""Time and memory of all findings of a program."""

import multiprocessing
import resource
import time

import gpuviz
from gpuviz.recording import Recording
from tests.benchmarks.recording import Row

KIB = 1 << 10
# Memory events and activities of a whole program; memory events of a cell.
MANY, A_CELL = 1_000_000, 10_000
ALL_S, ALL_BYTES, CELL_S = 5.0, 2 << 30, 0.1
EVENTS_OF_STEP, STREAMS = 8, 2


def recorded(events: int) -> Recording:
    """Return the recording of a program with this number of memory events, and of activities."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        streams = [gpu.Stream() for _ in range(STREAMS)]
        for step in range(events // EVENTS_OF_STEP):
            with streams[step % STREAMS]:
                _step(gpu)
        gpu.synchronize()
    return recorder.recording


def _step(gpu: gpuviz.SimulatedGPU) -> None:
    """Make four arrays, each allocated and freed, with as many activities as memory events."""
    chunk = gpu.empty(512 * KIB)
    gpu.copy_to_device(chunk)
    scaled = gpu.empty(512 * KIB)
    multiply = "cupy_multiply__float32_float_float32"
    gpu.launch(multiply, duration=5e-6, reads=[chunk], writes=[scaled])
    squares = gpu.empty(512 * KIB)
    gpu.launch("cupy_square__float32_float32", duration=5e-6, reads=[scaled], writes=[squares])
    total = gpu.empty(512)
    gpu.fill(total)
    for _ in range(3):
        gpu.launch("cupy_sum", duration=2e-6, reads=[squares], writes=[total])
    gpu.copy_to_host(total)


def measure(events: int, rounds: int) -> tuple[float, int]:
    """Return the least seconds of `findings`, and the bytes that this process took more for it."""
    recording = recorded(events)
    seconds = []
    before = _most_bytes()
    for _ in range(rounds):
        fresh = Recording(recording.tables, recording.manifest)
        began = time.perf_counter()
        fresh.findings()
        seconds.append(time.perf_counter() - began)
    return min(seconds), _most_bytes() - before


def _most_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    with multiprocessing.get_context("spawn").Pool(1) as process:
        whole_s, whole_bytes = process.apply(measure, (MANY, 2))
        cell_s, _ = process.apply(measure, (A_CELL, 5))
    name = f"findings of {MANY:,} memory events and activities"
    return [
        (name, f"{ALL_S} s", f"{whole_s:.2f} s", whole_s <= ALL_S),
        (f"{name}: memory", "2 GiB", f"{whole_bytes / 2**30:.2f} GiB", whole_bytes <= ALL_BYTES),
        (
            f"findings of {A_CELL:,} memory events",
            f"{1000 * CELL_S:.0f} ms",
            f"{1000 * cell_s:.0f} ms",
            cell_s <= CELL_S,
        ),
    ]
