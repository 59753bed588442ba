"""Time of finding the lines whose memory grows, in a million memory events."""

import multiprocessing

import gpuviz
from gpuviz.recording import Recording
from tests.benchmarks.analyses import of_events
from tests.benchmarks.recording import Row, fastest_s

MANY = 1_000_000
BOUND_S = 1.0


def recorded(events: int) -> Recording:
    """Return the recording of a program that keeps one array of every hundred."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    kept = []
    with gpuviz.record(device=gpu) as recorder:
        for step in range(events // 4):
            source, result = gpu.empty(4096), gpu.empty(4096)
            gpu.launch("load", duration=2e-6, writes=[source])
            gpu.launch("step", duration=2e-6, reads=[source], writes=[result])
            if step % 50 == 0:
                kept.append(result)
        gpu.synchronize()
    return recorder.recording


def measure_program() -> float:
    """Return the least seconds of `leaks` of a leaking program with half as many kernels."""
    recording = recorded(MANY)
    return fastest_s(lambda: Recording(recording.tables, recording.manifest).leaks())


def measure_events() -> float:
    """Return the least seconds of `leaks` of memory events alone, of many lines."""
    recording = of_events(MANY)
    return fastest_s(lambda: Recording(recording.tables, recording.manifest).leaks())


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    with multiprocessing.get_context("spawn").Pool(1) as process:
        program_s = process.apply(measure_program)
        events_s = process.apply(measure_events)
    return [
        (name, f"{BOUND_S} s", f"{seconds:.2f} s", seconds <= BOUND_S)
        for name, seconds in (
            (f"leaks() of {MANY:,} memory events of a leaking program", program_s),
            (f"leaks() of {MANY:,} memory events", events_s),
        )
    ]
