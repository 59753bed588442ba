"""Times that elementwise kernels take besides moving bytes and computing."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.elementwise import type_bytes

if TYPE_CHECKING:
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
