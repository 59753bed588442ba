"""Times of kernels that move bytes: what they take besides, and if they moved fewer."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.elementwise import type_bytes
from gpuviz.advice.fusion import are_reductions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.advice.device_blocks import DeviceBlocks

# Shorter kernels take time for other things than their elements.
_SHORTEST_NS = 5_000
# Functions that compute nothing that takes time.
_SIMPLE = (
    *("absolute", "add", "copy", "fill", "maximum", "minimum", "multiply", "negative", "square"),
    "subtract",
)

# A kernel with a lower share of the highest rate does not wait for memory.
_SLOW = 0.8


def thread_ns(device: "DeviceBlocks") -> float:
    """Return how long an elementwise kernel takes for each element at least, in ns.

    CuPy's kernels have a thread for each element. On an H200, those of float32 take as long for
    two arrays as for three: 4.8 ns for 1000 elements. 0 if that is not seen, as all such kernels
    read and write at about the highest rate.
    """
    launches, schedule = device.elementwise, device.schedule
    requested, bytes_of = device.used.blocks.requested, type_bytes()
    most = launches.elements[launches.launch] * int(bytes_of.max())
    read = np.minimum(requested[launches.source], most)
    moved = np.bincount(launches.launch, read, len(launches))
    moved += launches.elements * bytes_of[launches.output]
    duration = schedule.duration[schedule.number[launches.activity]]
    chosen = launches.is_whole & (duration >= _SHORTEST_NS)
    chosen &= launches.where(lambda function: function.name in _SIMPLE)
    if not chosen.any():
        return 0.0
    rate, time = moved[chosen] / duration[chosen], duration[chosen] / launches.elements[chosen]
    least = int(time.argmin())
    return float(time[least]) if rate[least] < _SLOW * rate.max() else 0.0


def with_fewer_bytes(device: "DeviceBlocks", left_out: "NDArray[Any]") -> "NDArray[Any]":
    """Return the durations of all work, in ns, if kernels moved fewer bytes of some blocks.

    Elementwise kernels and reductions take less time then, though not less than for their elements.

    Args:
        device: The blocks of a device.
        left_out: For each of ``device.used.blocks``, the share of its bytes that is not moved.
    """
    used, schedule, launches = device.used, device.schedule, device.elementwise
    seen = np.flatnonzero(used.activity >= 0)
    known = np.isin(used.activity[seen], launches.activity)
    known |= are_reductions(device.recording, used.activity[seen])
    seen = seen[known]
    work, place = np.unique(schedule.number[used.activity[seen]], return_inverse=True)
    whole = used.blocks.requested[used.block[seen]]
    size = np.where(used.bytes[seen] > 0, np.minimum(used.bytes[seen], whole), whole)
    moved, less = (
        np.bincount(place.ravel(), each, len(work))
        for each in (size, size * left_out[used.block[seen]])
    )
    duration, changed = schedule.duration[work], schedule.duration.copy()
    is_long = (duration >= _SHORTEST_NS) & (moved > 0)
    if is_long.any():
        elements = np.zeros(len(changed))
        elements[schedule.number[launches.activity]] = launches.elements
        least = elements[work] * thread_ns(device)
        fastest = float((moved[is_long] / duration[is_long]).max())
        saved = np.minimum(less / fastest, duration * less / np.maximum(moved, 1))
        saved = np.clip(saved, 0, np.maximum(duration - least, 0))
        changed[work] = duration - np.where(is_long, saved, 0).astype(np.int64)
    return changed
