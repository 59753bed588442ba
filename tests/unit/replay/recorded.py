"""Recordings to be replayed."""

from pathlib import Path

import gpuviz
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource

MIB = 1 << 20
STREAM = 0x5600
RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"
SHIPPED = ("conjugate_gradient", "fft_filter", "image_pipeline", "kmeans", "monte_carlo")


def record(program, *, devices=1, max_events=1_000_000):
    source = SimulatedSource(devices)
    with Recorder(source, None, stacks=False, max_events=max_events) as recorder:
        program(source)
    return recorder.recording


def shipped(name):
    return gpuviz.load(RECORDINGS / f"{name}.gpuviz")


def named(recording):
    """Return the events with stream handles instead of ids, and without times."""
    handles = {row["id"]: row["handle"] for row in recording.table("streams").to_pylist()}
    rows = recording.table("memory_events").to_pylist()
    return [row | {"stream": handles[row["stream"]]} for row in rows]


def requests(recording, *actions):
    columns = ("action", "requested_size", "device", "stream", "pool", "stack", "thread")
    return [
        tuple(row[column] for column in columns)
        for row in named(recording)
        if row["action"] in actions
    ]
