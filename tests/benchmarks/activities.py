"""Cost of activities: parsing CUPTI's records, memory and disk space. Needs no GPU."""

import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gpuviz import _core, _testing
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import DICTIONARIES
from gpuviz.recording import Recording
from tests.benchmarks.overlap import table
from tests.benchmarks.recording import Row

ACTIVITIES = 1_000_000
RUNS = 5
STREAMS = 4
STEP = 60
KERNELS = 25
COPY_EVERY = 12


def parsed_per_second() -> float:
    """Return the parsed records of kernels and copies per second, on one core."""
    return max(1e9 / _testing.parse_records(_core.Session(), ACTIVITIES) for _ in range(RUNS))


def bytes_per_activity() -> float:
    """Return the bytes per activity in a session of a million activities."""
    session = _core.Session()
    _testing.parse_records(session, ACTIVITIES)
    assert session.activities == ACTIVITIES
    return session.bytes / session.activities


def steps_of_a_program() -> dict[str, Any]:
    """Return columns of ``activities``: steps of 60 launches that differ only by timing noise.

    Durations of a kernel vary by 2 % with rare outliers, pauses by some hundreds of ns; times are
    integers in ns. A launch uses two or three correlation ids. Streams alternate by step.
    """
    generator = np.random.default_rng(5)
    number = np.arange(ACTIVITIES)
    in_step = number % STEP
    kernel_of = generator.integers(0, KERNELS, STEP)[in_step]
    is_copy = in_step % COPY_EVERY == 0
    typical = np.exp(generator.uniform(np.log(2_000), np.log(200_000), KERNELS))[kernel_of]
    typical = np.where(is_copy, 80_000, typical)
    hiccup = np.where(generator.random(ACTIVITIES) < 0.01, 1.5, 1.0)
    duration = typical * hiccup * (1 + 0.02 * generator.standard_normal(ACTIVITIES))
    pause = 900 + generator.exponential(300, ACTIVITIES)
    end = np.cumsum(duration + pause)
    kinds = [DICTIONARIES["activities", "kind"].index(kind) for kind in ("kernel", "memcpy")]
    return {
        "time": (end - duration).astype(np.int64),
        "end": end.astype(np.int64),
        "kind": np.where(is_copy, kinds[1], kinds[0]),
        "name": np.where(is_copy, KERNELS + 1, kernel_of + 1),
        "context": np.ones(ACTIVITIES),
        "stream": number // STEP % STREAMS + 1,
        "correlation": np.cumsum(generator.integers(2, 4, ACTIVITIES)),
        "bytes": np.where(is_copy, 1 << 22, 0),
        "copy_kind": np.where(is_copy, 1, 0),
        "source": np.where(is_copy, 2, 0),
        "destination": np.where(is_copy, 3, 0),
        "launch": np.where(is_copy, 0, kernel_of + 1),
    }


def recorded() -> Recording:
    """Return a recording of that program."""
    numbers = np.arange(1, KERNELS + 2)
    strings = {"id": numbers, "text": [f"kernel_{number}" for number in numbers]}
    launches = {"id": numbers, "grid_x": numbers}
    return Recording(
        {
            "activities": table("activities", steps_of_a_program()),
            "strings": table("strings", strings),
            "launch_configurations": table("launch_configurations", launches),
        },
        Manifest(simulated=True),
    )


def bytes_on_disk(recording: Recording) -> float:
    """Return the bytes per row of the table ``activities`` in a saved recording."""
    with tempfile.TemporaryDirectory() as folder:
        path = recording.save(Path(folder) / "run.gpuviz")
        with zipfile.ZipFile(path) as archive:
            return archive.getinfo("activities.arrow").compress_size / ACTIVITIES


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    parsed, held, on_disk = parsed_per_second(), bytes_per_activity(), bytes_on_disk(recorded())
    return [
        ("activity records parsed", "2 M/s", f"{parsed / 1e6:.1f} M/s", parsed >= 2e6),
        ("memory while recording 1 million activities", "64 B each", f"{held:.1f} B", held <= 64),
        ("1 million activities on disk", "20 B each", f"{on_disk:.1f} B", on_disk <= 20),
    ]
