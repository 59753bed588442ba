"""Cost of a range: without a recording, during one, and as a decorator."""

import timeit
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import gpuviz
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource

CALLS = 20_000
RUNS = 9
BOUND_NS = 500

NO_BOUND = "no bound"

Row = tuple[str, str, str, bool]


def nanoseconds(function: Callable[[], None]) -> float:
    """Return the ns of a call, including the overhead of calling."""
    return min(timeit.repeat(function, number=CALLS, repeat=RUNS)) / CALLS * 1e9


def enter_new() -> None:
    """Create, enter and leave a range."""
    with gpuviz.range("step"):
        pass


@gpuviz.range("step")
def decorated() -> None:
    """Do nothing, in a range."""


def rows() -> list[Row]:
    idle = {"with": nanoseconds(enter_new), "decorated": nanoseconds(decorated)}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.gpuviz"
        with Recorder(SimulatedSource(), path, stacks=False, max_events=1000):
            recording = {"with": nanoseconds(enter_new), "decorated": nanoseconds(decorated)}
    return [
        (
            f"gpuviz.range, {use}, not recording",
            f"at most {BOUND_NS} ns",
            f"{idle[use]:.0f} ns",
            idle[use] <= BOUND_NS,
        )
        for use in idle
    ] + [
        (f"gpuviz.range, {use}, recording", NO_BOUND, f"{recording[use]:.0f} ns", True)
        for use in recording
    ]
