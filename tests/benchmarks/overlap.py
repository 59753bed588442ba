"""Time of overlap analyses of a million activities, each launched by a separate call."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import DICTIONARIES, IMPLIED, schemas
from gpuviz.recording import Recording
from tests.benchmarks.recording import Row, fastest_s

ACTIVITIES = 1_000_000
STREAMS = 8
KERNELS = 200
LAUNCHES = 50
STACKS = 2_000
# The kinds of activities, in turn.
PATTERN = ("kernel", "kernel", "memcpy", "kernel", "kernel", "memset", "kernel", "kernel")
CALLS = ("cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuMemAlloc_v2")
LAUNCH, COPY, SYNCHRONIZE, ALLOCATE = range(1, 5)


def table(name: str, columns: dict[str, Any]) -> pa.Table:
    """Return a table from columns; enumerations are codes, and missing columns are 0."""
    count = len(next(iter(columns.values())))
    arrays = []
    schema = pa.schema([field for field in schemas()[name] if (name, field.name) not in IMPLIED])
    for field in schema:
        values = columns.get(field.name, np.zeros(count, np.int64))
        if pa.types.is_dictionary(field.type):
            names = pa.array(DICTIONARIES[name, field.name])
            arrays.append(pa.DictionaryArray.from_arrays(pa.array(values, pa.int8()), names))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.table(arrays, schema=schema)


def recorded(count: int = ACTIVITIES) -> Recording:
    """Return a program that launches on streams in turn, waits for events, and synchronizes."""
    generator = np.random.default_rng(5)
    numbers = np.arange(count)
    launched = np.cumsum(generator.integers(1_000, 6_000, count))
    duration = generator.integers(1_000, 30_000, count)
    begin = np.empty(count, np.int64)
    for stream in range(STREAMS):
        rows = numbers % STREAMS == stream
        before = np.cumsum(duration[rows]) - duration[rows]
        begin[rows] = before + np.maximum.accumulate(launched[rows] + 5_000 - before)
    kinds = np.array([DICTIONARIES["activities", "kind"].index(kind) for kind in PATTERN])
    kind = kinds[numbers // STREAMS % len(PATTERN)]
    # Launches have even correlation ids; calls between them the odd ids before.
    correlation = 2 * numbers + 2
    finished = np.argsort(begin + duration, kind="stable")
    activities = {
        "time": begin,
        "end": begin + duration,
        "kind": kind,
        "name": generator.integers(1, KERNELS + 1, count) + len(CALLS),
        "stream": numbers % STREAMS + 1,
        "correlation": correlation,
        "bytes": np.where(kind == 0, 0, 1 << 20),
        "copy_kind": np.where(kind == 1, 1, 0),
        "source": np.where(kind == 1, 2, 0),
        "destination": np.where(kind == 1, 3, 0),
        "launch": generator.integers(1, LAUNCHES + 1, count),
    }
    return Recording(
        {
            "activities": table("activities", {n: c[finished] for n, c in activities.items()}),
            "api_calls": table("api_calls", calls(launched, correlation, kind)),
            "synchronizations": table("synchronizations", waits(launched, correlation)),
            **dictionaries(),
        },
        Manifest(simulated=True),
    )


def calls(launched: Any, correlation: Any, kind: Any) -> dict[str, Any]:
    """Return the launches, and a call of another kind before every tenth."""
    others = np.arange(0, len(launched), 10)
    name = np.concatenate(
        [
            np.where(kind == 1, COPY, LAUNCH),
            np.where(others % 1_000 == 0, ALLOCATE, SYNCHRONIZE),
        ],
    )
    time = np.concatenate([launched, launched[others] - 900])
    order = np.argsort(time, kind="stable")
    columns = {
        "time": time,
        "end": time + 800,
        "name": name,
        "thread": np.full(len(time), 4711),
        "correlation": np.concatenate([correlation, correlation[others] - 1]),
        "stack": np.arange(len(time)) % STACKS + 1,
    }
    return {column: values[order] for column, values in columns.items()}


def waits(launched: Any, correlation: Any) -> dict[str, Any]:
    """Return an event record for every fifth launch, and a wait for it by another stream."""
    numbers = np.arange(0, len(launched) - 2, 5)
    pairs = np.repeat(numbers, 2)
    is_wait = np.arange(len(pairs)) % 2
    return {
        "time": np.where(is_wait, launched[pairs], 0),
        "end": np.where(is_wait, launched[pairs], 0),
        "kind": is_wait,
        "stream": (pairs + is_wait) % STREAMS + 1,
        "event_sync_id": pairs + 1,
        "correlation": correlation[pairs] + 1,
    }


def dictionaries() -> dict[str, pa.Table]:
    """Return the names, stacks and launch configurations."""
    names = [*CALLS, *(f"void kernel_{n}<float>(float*, int)" for n in range(KERNELS))]
    strings = {"id": np.arange(len(names)) + 1, "text": names}
    launches = {field.name: np.arange(LAUNCHES) + 1 for field in schemas()["launch_configurations"]}
    frames = [
        {"id": n + 1, "name": "step", "filename": "run.py", "line": n // 4, "cell": 0}
        | {"source": "x = y"}
        for n in range(STACKS)
    ]
    stacks = [{"id": n + 1, "frames": [n + 1]} for n in range(STACKS)]
    return {
        "strings": table("strings", strings),
        "launch_configurations": table("launch_configurations", launches),
        "stacks": pa.Table.from_pylist(stacks, schema=schemas()["stacks"]),
        "frames": pa.Table.from_pylist(frames, schema=schemas()["frames"]),
    }


def _asked(recording: Recording, question: Callable[[Recording], object]) -> None:
    # A recording keeps what it has computed.
    question(Recording(recording.tables, recording.manifest))


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    recording = recorded()
    questions: dict[str, Callable[[Recording], object]] = {
        "overlap()": Recording.overlap,
        'kernels(by="line")': lambda fresh: fresh.kernels("line"),
        'synchronizations(by="line")': lambda fresh: fresh.synchronizations("line"),
    }
    measured = {
        name: fastest_s(partial(_asked, recording, question))
        for name, question in questions.items()
    }
    return [
        (f"{name} of 1 million activities", "1 s", f"{seconds:.2f} s", seconds <= 1)
        for name, seconds in measured.items()
    ]
