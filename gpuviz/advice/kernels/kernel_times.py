"""Times of kernels that move bytes: what they take besides, and if they moved fewer."""

import numpy as np

from gpuviz.advice.arrays.cupy_reductions import are_of_cub, are_reductions
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import type_bytes

# Shorter kernels take time for other things than their elements.
_SHORTEST_NS = 5_000
# Functions that compute nothing that takes time.
_SIMPLE = (
    *("absolute", "add", "copy", "fill", "maximum", "minimum", "multiply", "negative", "square"),
    "subtract",
)
# Of an element whose type is unknown.
_USUAL_BYTES = 8
# A kernel with a lower share of the highest rate does not wait for memory.
_SLOW = 0.8


def thread_ns(device: DeviceBlocks) -> float:
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


def highest_rate(device: DeviceBlocks) -> float:
    """Return the bytes that an elementwise kernel or a reduction moves in 1 ns at most; 0 if none.

    Short kernels do not count.
    """
    seen, size = _moved(device)
    work, place = _work(device, seen)
    moved, duration = np.bincount(place, size, len(work)), device.schedule.duration[work]
    is_long = (duration >= _SHORTEST_NS) & (moved > 0)
    return float((moved[is_long] / duration[is_long]).max(initial=0))


def with_fewer_bytes(device: DeviceBlocks, left_out: np.ndarray) -> np.ndarray:
    """Return the durations of all work, in ns, if kernels moved fewer bytes of some blocks.

    Elementwise kernels and reductions take less time then, though not less than for their elements.
    CUB's reductions take what their bytes need: on an H200, half of the time for float32.

    Args:
        device: The blocks of a device.
        left_out: For each of ``device.used.blocks``, the share of its bytes that is not moved.
    """
    used, schedule = device.used, device.schedule
    seen, size = _moved(device)
    work, place = _work(device, seen)
    moved, less = (
        np.bincount(place, each, len(work)) for each in (size, size * left_out[used.block[seen]])
    )
    duration, changed = schedule.duration[work], schedule.duration.copy()
    is_long = (duration >= _SHORTEST_NS) & (moved > 0)
    if is_long.any():
        least = _elements(device, seen)[work] * thread_ns(device)
        # A thread of theirs reads several elements at once.
        least[are_of_cub(device.recording, schedule.rows[work])] = 0
        fastest = float((moved[is_long] / duration[is_long]).max())
        saved = np.minimum(less / fastest, duration * less / np.maximum(moved, 1))
        saved = np.clip(saved, 0, np.maximum(duration - least, 0))
        changed[work] = duration - np.where(is_long, saved, 0).astype(np.int64)
    return changed


def _moved(device: DeviceBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Return the uses by elementwise kernels and reductions, and the bytes that each moves."""
    used = device.used
    seen = np.flatnonzero(used.activity >= 0)
    known = np.isin(used.activity[seen], device.elementwise.activity)
    known |= are_reductions(device.recording, used.activity[seen])
    seen = seen[known]
    whole = used.blocks.requested[used.block[seen]]
    return seen, np.where(used.bytes[seen] > 0, np.minimum(used.bytes[seen], whole), whole)


def _work(device: DeviceBlocks, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of work in the schedule that some uses are of, and the place of each."""
    number = device.schedule.number[device.used.activity[seen]]
    work, place = np.unique(number, return_inverse=True)
    return work, place.ravel()


def _elements(device: DeviceBlocks, seen: np.ndarray) -> np.ndarray:
    """Return how many elements each work writes or, as a reduction, reads; 0 of other work.

    Those of arrays that no elementwise function uses are taken for float64.

    Args:
        device: The blocks of a device.
        seen: The uses by elementwise kernels and reductions.
    """
    used, schedule, launches = device.used, device.schedule, device.elementwise
    of_block = np.zeros(len(used.blocks), np.int64)
    np.maximum.at(of_block, launches.source, launches.source_elements)
    np.maximum.at(of_block, launches.target, launches.elements)
    of_block = np.where(of_block > 0, of_block, used.blocks.requested // _USUAL_BYTES)
    elements = np.zeros(len(schedule.duration), np.int64)
    np.maximum.at(elements, schedule.number[used.activity[seen]], of_block[used.block[seen]])
    elements[schedule.number[launches.activity]] = launches.elements
    return elements
