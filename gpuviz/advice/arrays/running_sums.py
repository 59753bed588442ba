"""Arrays to which lines add others again and again."""

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.host_lines import line_numbers
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import stacks_of

_ADDS = ("add", "subtract")
# A single value.
_VALUE_BYTES = 16


def running_sums(device: DeviceBlocks, is_filled: np.ndarray) -> np.ndarray:
    """Return to which of ``used.blocks`` lines add arrays again and again.

    A line adds at least two arrays to one that is filled with a value (``total += x``), or it makes
    a new array of the one that it made before (``total = total + x``).

    Args:
        device: The device's blocks.
        is_filled: Which of ``used.blocks`` are filled with a value.
    """
    used, launches, tables = device.used, device.elementwise, device.recording.tables
    launch, source = launches.launch, launches.source
    target = launches.target[launch]
    line = numbered(
        line_numbers(device.recording, stacks_of(tables, launches.call)), launches.function
    )[0]
    adds = launches.where(lambda each: each.name in _ADDS)[launch] & (source != target)
    adds &= used.blocks.requested[source] > _VALUE_BYTES
    in_place = adds & launches.is_update[launch]
    _, each, count = np.unique(
        np.stack([target, line[launch]])[:, in_place], axis=1, return_index=True, return_counts=True
    )
    sums = np.zeros(len(used.blocks), bool)
    sums[target[in_place][each[count > 1]]] = True
    sums &= is_filled
    is_maker = (used.first[launches.target] == launches.call) & ~launches.is_update
    made_by = np.full(len(used.blocks), -1)
    made_by[launches.target[is_maker]] = line[is_maker]
    anew = adds & is_maker[launch]
    carries = anew & (made_by[source] == line[launch])
    begins = anew & is_filled[source] & np.isin(line[launch], line[launch][carries])
    sums[source[carries | begins]] = True
    return sums
