"""Delay of a program that runs out of memory by the page about it."""

import re
import tempfile
import time
from pathlib import Path
from statistics import median

import gpuviz

BLOCKS = 100_000
SITES = 500
KIB, MIB = 1 << 10, 1 << 20
FAILURES = 3

Row = tuple[str, str, str, bool]


def held_by_many_sites(gpu: gpuviz.SimulatedGPU, blocks: int) -> list[object]:
    """Return blocks of two sizes, each allocated by a different line."""
    lines = "\n".join(
        f"def site_{n}(gpu): return gpu.empty({4 + n % 60} << 10)" for n in range(SITES)
    )
    functions: dict[str, object] = {}
    exec(compile(lines, "program.py", "exec"), functions)  # noqa: S102 - as many lines as asked for
    sites = [functions[f"site_{n}"] for n in range(SITES)]
    return [sites[n % SITES](gpu) for n in range(blocks)]  # type: ignore[operator]


def seconds_to_fail(path: Path, blocks: int, churn: int) -> tuple[list[float], int]:
    """Return the durations of the first failures, and the size of a page."""
    gpu = gpuviz.SimulatedGPU(memory=80 << 30, real_time=False)
    times = []
    with gpuviz.record(path, device=gpu):
        held = held_by_many_sites(gpu, blocks)
        for _ in range(churn):
            gpu.empty(3 * MIB)
        for _ in range(FAILURES):
            began = time.perf_counter()
            try:
                gpu.empty(81 << 30)
            except MemoryError as error:
                times.append(time.perf_counter() - began)
                page = re.findall(r"Details: (.*)", str(error))[0]
    assert len(held) == blocks
    return times, Path(page).stat().st_size


def rows() -> list[Row]:
    """Measure it; return the lines of the table."""
    lines = []
    for events, churn in ((BLOCKS, 0), (10 * BLOCKS, 3 * BLOCKS)):
        with tempfile.TemporaryDirectory() as folder:
            times, size = seconds_to_fail(Path(folder) / "run.gpuviz", BLOCKS, churn)
        name = f"out-of-memory page at {BLOCKS:,} live blocks, {events:,} events"
        figure = f"{min(times):.2f} s, median {median(times):.2f} s; {size / MIB:.1f} MiB"
        lines.append((name, "1 s", figure, min(times) <= 1))
    return lines
