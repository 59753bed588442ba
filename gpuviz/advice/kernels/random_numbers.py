"""CuPy's generators of random numbers, of which the older one fills little of the GPU."""

import numpy as np

from gpuviz.advice.replay.schedule import Schedule
from gpuviz.analysis.touches import touches
from gpuviz.data.columns import plain

# Of the device's bandwidth, what CuPy's `Generator` reaches (50 million float32 on an H100).
_BANDWIDTH_OF_GENERATOR = 0.5
_EMPTY_NS = 2_000

RANDOM_ADVICE = (
    "Draw the numbers with `rng = cupy.random.default_rng()`, whose kernels fill the GPU, instead "
    "of `cupy.random.rand` and other functions of `RandomState`. The numbers will differ."
)


def of_generator(schedule: Schedule, work: np.ndarray, at_full_width: np.ndarray) -> np.ndarray:
    """Return how long `cupy.random.Generator` takes for what some kernels write, in ns."""
    recording = schedule.recording
    devices = recording.tables["devices"]
    of_device = plain(devices["id"]) == schedule.device[work[0]]
    bandwidth = float(plain(devices["memory_bandwidth"])[of_device].max(initial=0))
    used = touches(recording)
    if not bandwidth or used is None:
        return at_full_width
    rows = np.flatnonzero(np.isin(used.activity, schedule.rows[work]))
    written = np.zeros(len(schedule.rows), np.int64)
    np.maximum.at(
        written, schedule.number[used.activity[rows]], used.blocks.requested[used.block[rows]]
    )
    time_ns = written[work] / (_BANDWIDTH_OF_GENERATOR * bandwidth) * 1e9
    time_ns = np.clip(time_ns, _EMPTY_NS, schedule.duration[work]).astype(np.int64)
    found: np.ndarray = np.where(written[work] > 0, time_ns, at_full_width)
    return found
