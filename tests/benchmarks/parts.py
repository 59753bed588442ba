"""What each part of a recording costs: an allocation, a launch, and the start of `gpuviz run`.

Needs a GPU. Each case runs in a separate process, because CUPTI has lasting effects on a process;
without and with are measured there one after the other.
"""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.cupy_allocation import DEPTH, Row, at_depth, cupy_pool, pair_of_1_kib
from tests.benchmarks.streams import KERNELS, bare_cupti, launch_seconds

NEEDS_GPU = True
TIMEOUT_S = 120
CALLS = 100_000
PAIRS = 7
RUNS = 7
MOST_PAIR, MOST_LAUNCH, MOST_OBSERVED, MOST_RUN_S = 1.35, 1.3, 3.0, 0.3
PROGRAM = "import cupy\ncupy.zeros(1000).sum().get()\n"


def recording(**options: Any) -> AbstractContextManager[Any]:
    import gpuviz

    return gpuviz.record(**options)


@contextmanager
def recording_in_a_range():
    import gpuviz

    with gpuviz.record(), gpuviz.range("part"):
        yield


CASES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "CUPTI alone, no kinds": bare_cupti,
    "CUPTI alone, kernels": lambda: bare_cupti(KERNELS),
    "CUPTI alone, all kinds": lambda: bare_cupti(everything=True),
    "CUPTI alone, all kinds and callbacks": lambda: bare_cupti(everything=True, callbacks=True),
    "memory": lambda: recording(streams=False),
    "memory, no stacks": lambda: recording(streams=False, stacks=False),
    "streams, activities only": lambda: recording(launch_sites=False, launch_blocks=False),
    "streams without blocks": lambda: recording(launch_blocks=False),
    "everything": recording,
    "everything, no stacks": lambda: recording(stacks=False),
    "everything, in a range": recording_in_a_range,
    "observe": lambda: recording(allocator="observe", streams=False),
    "observe, no stacks": lambda: recording(allocator="observe", streams=False, stacks=False),
    "observe, everything": lambda: recording(allocator="observe"),
}


def device_calls() -> dict[str, float]:
    """Return the seconds of calls that report the current device."""
    from cupy_backends.cuda.api import runtime

    from gpuviz import _testing

    driver = ctypes.CDLL("libcuda.so.1")
    place = ctypes.create_string_buffer(8)
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    capsule = runtime.__pyx_capi__["getDevice"]
    calls = {"getDevice": (pointer_of(capsule, name_of(capsule)), 1)}
    for name in ("cuCtxGetDevice", "cuCtxGetCurrent"):
        address = ctypes.cast(getattr(driver, name), ctypes.c_void_p).value
        calls[name] = (address, ctypes.addressof(place))
    return {
        name: min(_testing.call_ns(*call, CALLS) for _ in range(PAIRS)) / 1e9
        for name, call in calls.items()
    }


def seconds_of_parts() -> dict[str, float]:
    """Return the seconds of an allocation and free, of a launch, and of calls."""

    def deep() -> float:
        return at_depth(DEPTH, pair_of_1_kib)

    pairs = [deep() for _ in range(PAIRS)]
    return {"pair": statistics.median(pairs), "launch": launch_seconds(), **device_calls()}


def measure(case: str) -> list[dict[str, float]]:
    """Return the seconds of all parts without and with a case; for a fresh process."""
    with cupy_pool():
        seconds_of_parts()
        before = seconds_of_parts()
        with CASES[case]():
            return [before, seconds_of_parts()]


def phases() -> dict[str, float]:
    """Return the seconds of each phase of a short recorded program; for a fresh process."""
    took: dict[str, float] = {}
    last = time.perf_counter()

    def step(name: str) -> None:
        nonlocal last
        took[name] = time.perf_counter() - last
        last = time.perf_counter()

    def timed(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def wrapped(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                place = f"    {getattr(owner, '__name__', owner)}.{name}"
                took[place] = took.get(place, 0) + time.perf_counter() - began

        setattr(owner, name, wrapped)

    import cupy

    step("import cupy")
    from gpuviz.commands import recorded_run

    step("import gpuviz.commands.recorded_run")
    import pyarrow as pa  # noqa: F401 - only its time matters

    step("import pyarrow")
    from gpuviz.frameworks import cupy as framework
    from gpuviz.recorder import cupti, feed, pump, recorder, store

    timed(cupti, "find_cupti")
    for owner, names in {
        cupti.CuptiTracing: ("begin", "end"),
        framework.CachingSource: ("__init__", "begin", "end", "sample", "devices"),
        feed.Feed: ("restart", "close"),
        pump.Pump: ("drain", "drain_the_rest"),
        store.Store: ("__init__", "finish"),
        recorder.Recorder: ("_manifest", "status"),
    }.items():
        for name in names:
            timed(owner, name)
    with tempfile.TemporaryDirectory() as folder:
        import gpuviz

        made = gpuviz.record(Path(folder, "run.gpuviz"))
        step("record()")
        made.start()
        step("start()")
        cupy.zeros(1000).sum().get()
        step("first operation")
        cupy.zeros(1000).sum().get()
        step("second operation")
        made.stop()
        step("stop()")
        assert recorded_run.RecordedRun is not None
    return took


def untraced_operation() -> dict[str, float]:
    """Return the seconds of a program's import of CuPy and its first operation."""
    began = time.perf_counter()
    import cupy

    imported = time.perf_counter()
    cupy.zeros(1000).sum().get()
    return {
        "import cupy (unrecorded)": imported - began,
        "first operation (unrecorded)": time.perf_counter() - imported,
    }


def in_a_process(*arguments: str) -> Any:
    command = [sys.executable, "-m", "tests.benchmarks.parts", *arguments]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=TIMEOUT_S)
    return json.loads(ran.stdout.splitlines()[-1])


def run_seconds() -> dict[str, list[float]]:
    """Return the seconds of a short program, plain and under `gpuviz run`, alternately."""
    script = str(Path(sysconfig.get_path("scripts"), "gpuviz"))
    tool = [script] if Path(script).exists() else [sys.executable, "-m", "gpuviz"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "program.py").write_text(PROGRAM)
        Path(folder, "nothing.py").write_text("pass\n")
        commands = {
            "plain": [sys.executable, "program.py"],
            "run": [*tool, "run", "--quiet", "--force", "program.py"],
            "run --no-streams": [*tool, "run", "--quiet", "--force", "--no-streams", "program.py"],
            "plain, nothing": [sys.executable, "nothing.py"],
            "run, nothing": [*tool, "run", "--quiet", "nothing.py"],
        }
        took: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(1 + RUNS):  # the first to warm up
            for name, command in commands.items():
                began = time.perf_counter()
                subprocess.run(command, cwd=folder, check=True, env=dict(os.environ))
                took[name].append(time.perf_counter() - began)
    return {name: seconds[1:] for name, seconds in took.items()}


def part_rows() -> Iterator[Row]:
    """Yield a row for each case and part."""
    bounds = {
        ("everything", "pair"): MOST_PAIR,
        ("everything", "launch"): MOST_LAUNCH,
        ("observe", "pair"): MOST_OBSERVED,
    }
    for case in CASES:
        without, within = in_a_process(case)
        for part, base in without.items():
            ratio = within[part] / base
            text = f"{within[part] * 1e9:.4g} ns against {base * 1e9:.4g} ns: {ratio:.3f}x"
            bound = bounds.get((case, part))
            limit = "no bound" if bound is None else f"at most {bound}x"
            yield f"{part}: {case}", limit, text, bound is None or ratio <= bound


def start_rows() -> Iterator[Row]:
    """Yield the rows on the start and end of a recorded program."""
    took = {name: statistics.median(seconds) for name, seconds in run_seconds().items()}
    more = took["run"] - took["plain"]
    limit = f"+{MOST_RUN_S} s"
    yield "gpuviz run, one operation", limit, f"+{more:.3f} s", more <= MOST_RUN_S
    for name, seconds in took.items():
        yield f"program: {name}", "no bound", f"{seconds:.3f} s", True
    for name, seconds in {**in_a_process("--untraced"), **in_a_process("--phases")}.items():
        yield f"phase: {name}", "no bound", f"{seconds * 1e3:.1f} ms", True


def rows() -> Iterator[Row]:
    """Measure everything; yield the rows of the table."""
    yield from start_rows()
    yield from part_rows()


def main() -> None:
    """Print the rows as they are measured, or the result of one process as JSON."""
    if len(sys.argv) == 1:
        for row in rows():
            print(" | ".join(row[:3]), flush=True)  # noqa: T201 - its output
        return
    known = {"--phases": phases, "--untraced": untraced_operation}
    chosen = sys.argv[1]
    result = known[chosen]() if chosen in known else measure(chosen)
    sys.stdout.write(f"{json.dumps(result)}\n")


if __name__ == "__main__":
    main()
