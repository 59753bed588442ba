"""What recording costs whole programs, beside CUPTI alone and torch's profiler.

Needs a GPU with CuPy and torch. Each program runs in a process of its own, where rounds without and
with each way of recording take turns; torch's profiler keeps CUPTI, and so has another process.
A figure is the median over the rounds of the ratio to the unrecorded rounds before and after.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from tests.benchmarks.streams import bare_cupti, recording
from tests.gpu import compensated_programs as programs

Row = tuple[str, str, str, bool]

NEEDS_GPU = True
ROUNDS, SECONDS, FIRST, FEWEST = 7, 0.25, 3, 5
TIMEOUT_S = 150
CUPTI, DEFAULT, HAZARDS, PROFILER = "CUPTI alone", "recorded", "with hazards", "torch.profiler"
# The bounds of each program's ways of being recorded.
BOUNDS: dict[str, dict[str, float | None]] = {
    "small_kernels": {CUPTI: None, DEFAULT: 1.15},
    "conjugate_gradient": {CUPTI: None, DEFAULT: 1.10, HAZARDS: 1.15},
    "lattice_boltzmann": {CUPTI: None, DEFAULT: 1.02},
    "resnet": {CUPTI: None, DEFAULT: 1.20},
    "generation": {CUPTI: None, DEFAULT: 1.25},
}
OF_TORCH = ("resnet", "generation")


def lattice_boltzmann() -> programs.Step:
    """Some 200 launches that take the GPU 4 ms."""
    import cupy as cp

    velocities = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)]
    weights = [4 / 9 if not (x or y) else 1 / 9 if not x * y else 1 / 36 for x, y in velocities]
    state = [cp.full((2400, 2400), weight, cp.float32) for weight in weights]

    def step() -> None:
        density = sum(state[1:], state[0])
        x_flow = sum(v[0] * part for v, part in zip(velocities, state, strict=True)) / density
        y_flow = sum(v[1] * part for v, part in zip(velocities, state, strict=True)) / density
        for place, (velocity, weight) in enumerate(zip(velocities, weights, strict=True)):
            along = velocity[0] * x_flow + velocity[1] * y_flow
            moved = cp.roll(state[place], velocity, (0, 1))
            state[place] = moved + 0.6 * (weight * density * (1 + 3 * along) - moved)

    return step


def profiled() -> AbstractContextManager[Any]:
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    return profile(activities=activities, profile_memory=True, with_stack=True)


WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    CUPTI: lambda: bare_cupti(everything=True, callbacks=True),
    DEFAULT: recording,
    HAZARDS: lambda: recording(hazards=True),
    PROFILER: profiled,
}


def step_ms(step: programs.Step) -> float:
    """Return the median time of a step, without the first ones."""
    for _ in range(FIRST):
        step()
    programs.synchronize()
    times: list[float] = []
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until or len(times) < FEWEST:
        began = time.perf_counter()
        step()
        programs.synchronize()
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def measure(name: str, ways: list[str]) -> dict[str, tuple[float, float]]:
    """Return a step's median time unrecorded, and the ratio, of each way; for a new process."""
    step = (lattice_boltzmann if name == "lattice_boltzmann" else getattr(programs, name))()
    step_ms(step)
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    before = step_ms(step)
    for _ in range(ROUNDS):
        for way, rounds in times.items():
            with WAYS[way]():
                during = step_ms(step)
            after = step_ms(step)
            rounds.append(((before + after) / 2, during))
            before = after
    return {
        way: (
            statistics.median(plain for plain, _ in rounds),
            statistics.median(during / plain for plain, during in rounds),
        )
        for way, rounds in times.items()
    }


def in_a_process(name: str, ways: list[str]) -> dict[str, tuple[float, float]]:
    command = [sys.executable, "-m", "tests.benchmarks.recording_cost", name, *ways]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=TIMEOUT_S)
    found: dict[str, tuple[float, float]] = json.loads(ran.stdout.splitlines()[-1])
    return found


def rows() -> Iterator[Row]:
    """Measure all programs; yield a row for each way of recording them."""
    for name, bounds in BOUNDS.items():
        found = in_a_process(name, list(bounds))
        if name in OF_TORCH:
            found |= in_a_process(name, [PROFILER])
        for way, (plain, ratio) in found.items():
            bound = bounds.get(way)
            limit = "no bound" if bound is None else f"at most {bound}x"
            text = f"{plain:.2f} ms, {ratio:.3f}x"
            yield f"{name.replace('_', ' ')}, {way}", limit, text, bound is None or ratio <= bound
        if name in OF_TORCH:
            share = (found[DEFAULT][1] - 1) / (found[PROFILER][1] - 1)
            what = f"{name}, of what torch.profiler adds"
            yield what, "at most 50 %", f"{100 * share:.0f} %", share <= 0.5


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(measure(sys.argv[1], sys.argv[2:]))}\n")
