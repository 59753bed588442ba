"""Overhead of a recording that looks for hazards: for a launch, and for the workloads.

Needs a GPU. Each is measured in a process of its own, without a recording, with one, and with one
that looks for hazards, in turn. Figures are medians of the rounds.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from gpuviz.commands.workloads import WORKLOADS
from tests.benchmarks.recording import Row
from tests.benchmarks.streams import launch_seconds

NEEDS_GPU = True
ROUNDS = 4
TIMEOUT_S = 300
MOST_OF_LAUNCH = 1.4
MOST_MORE_S = 0.5e-6
MOST_OF_WORKLOAD = 1.02
LAUNCH = "launch"


def workload_seconds(name: str) -> float:
    import cupy

    began = time.perf_counter()
    WORKLOADS[name].run()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - began


def measured(name: str) -> dict[str, float]:
    """Return median seconds, and how many hazards were found; for a fresh process."""
    import gpuviz

    def run() -> float:
        return launch_seconds() if name == LAUNCH else workload_seconds(name)

    def recorded(*, hazards: bool) -> Callable[[], float]:
        def measure() -> float:
            with gpuviz.record(hazards=hazards) as recorder:
                seconds = run()
            found.append(len(recorder.recording.hazards()) if hazards else 0)
            return seconds

        return measure

    found: list[int] = []
    cases = {"none": run, "all": recorded(hazards=False), "hazards": recorded(hazards=True)}
    seconds: dict[str, list[float]] = {case: [] for case in cases}
    run()
    for turn in range(ROUNDS):
        for case in list(cases)[:: -1 if turn % 2 else 1]:
            seconds[case].append(cases[case]())
    medians = {case: statistics.median(values) for case, values in seconds.items()}
    return {**medians, "found": float(max(found))}


def in_process(name: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks.hazards_recording", name]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S)
    result: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return result


def rows() -> list[Row]:
    """Measure everything; return the rows of the table."""
    launch = in_process(LAUNCH)
    more = launch["hazards"] - launch["all"]
    ratio = launch["hazards"] / launch["none"]
    table: list[Row] = [
        (
            "a launch, hazards, against everything else",
            f"+{MOST_MORE_S * 1e6:g} us",
            f"{more * 1e6:+.2f} us",
            more <= MOST_MORE_S,
        ),
        (
            "a launch, hazards, against no recording",
            f"{MOST_OF_LAUNCH}x",
            f"{launch['hazards'] * 1e6:.2f} against {launch['none'] * 1e6:.2f} us: {ratio:.2f}x",
            ratio <= MOST_OF_LAUNCH,
        ),
    ]
    for name in WORKLOADS:
        found = in_process(name)
        ratio = found["hazards"] / found["none"]
        text = (
            f"{found['hazards']:.3f} against {found['none']:.3f} s: {ratio:.3f}x "
            f"(everything else: {found['all'] / found['none']:.3f}x), {found['found']:.0f} hazards"
        )
        is_met = ratio <= MOST_OF_WORKLOAD and found["found"] == 0
        table.append((f"{name}, hazards", f"{MOST_OF_WORKLOAD}x, 0 hazards", text, is_met))
    return table


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(measured(sys.argv[1]))}\n")
