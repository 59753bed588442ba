"""The peak of a device, from what the largest operation must hold to what the device held."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpuviz.advice.arrays.device_blocks import DeviceBlocks, device_blocks
from gpuviz.analysis.levels import memory_levels
from gpuviz.analysis.packing import packing
from gpuviz.analysis.processes import part_of_device
from gpuviz.data.columns import distinct, plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData


class _Step(NamedTuple):
    level: str
    responsible: str
    meaning: str


_STEPS = (
    _Step(
        "largest operation",
        "program",
        "The arrays that the largest kernel or copy uses at once: no order of allocations needs "
        "less, unless the operation is divided.",
    ),
    _Step(
        "used arrays",
        "program",
        "Each array from the kernel or copy that first uses it to the one that last uses it: the "
        "results that later operations need.",
    ),
    _Step(
        "requested",
        "program",
        "The bytes that the program requested, from each allocation to its free: arrays allocated "
        "early, freed late, or never used.",
    ),
    _Step("allocated", "allocator", "The same blocks with their sizes rounded."),
    _Step(
        "active", "allocator", "With blocks that are freed but wait for the work of other streams."
    ),
    _Step(
        "packed",
        "allocator",
        "The best packing found for the active blocks, none of which can move: with gaps that the "
        "search did not close.",
    ),
    _Step(
        "reserved",
        "allocator",
        "The segments that the allocator held: cached and fragmented memory.",
    ),
    _Step(
        "device",
        "others",
        "The memory in use on the device: contexts, libraries and other processes.",
    ),
)


def peak_chain(
    recording: RecordingData, device: int | None = None, *, seconds: float | None = 1.0
) -> pa.Table:
    """Return how the peak of a device's memory comes about, level by level.

    Every level includes the one before it, and each has its maximum at a time of its own. The first
    two need a recording of which work used which arrays.

    Args:
        recording: The recording.
        device: Ordinal; the recording's first device if None.
        seconds: Time limit of the search for a packing; see `gpuviz.analysis.packing.packing`. If
            None, there is none, and ``packed`` is unknown.

    Returns:
        One row for each level, smallest first: ``level``; ``bytes``, its maximum, null if unknown;
        ``added``, by how many bytes it exceeds the known level before it; ``time``, the first time
        of the maximum in ns, null if unknown; ``responsible`` for what was added: the ``program``,
        the ``allocator`` or ``others``; ``meaning``.

    Raises:
        ValueError: There is no such device, or ``seconds`` is negative.
    """
    device = recording.device_or_first(device)
    maxima = {
        **_of_uses(recording, device),
        **_of_levels(recording, device),
        **({} if seconds is None else _of_packing(recording, device, seconds)),
        **_of_device(recording, device),
    }
    rows, before = [], 0
    for step in _STEPS:
        size, time = maxima.get(step.level, (None, None))
        if size is not None and size < before:
            # Other processes ended, samples missed the peak, or segments were mapped anew.
            size, time = None, None
        added = None if size is None else size - before
        before = before if size is None else size
        rows.append({"bytes": size, "added": added, "time": time, **step._asdict()})
    numbers = [(name, pa.int64()) for name in ("bytes", "added", "time")]
    texts = [(name, pa.string()) for name in ("responsible", "meaning")]
    return pa.Table.from_pylist(rows, pa.schema([("level", pa.string()), *numbers, *texts]))


# Bytes of a level, and the first time of the maximum in ns if known, by name.
Maxima = dict[str, tuple[int, int | None]]


def _of_uses(recording: RecordingData, device: int) -> Maxima:
    recording = part_of_device(recording, device)
    return uses(recording).get(device, {})


@Once
def uses(recording: RecordingData) -> dict[int, Maxima]:
    """Return the levels that follow from the uses of blocks, by device."""
    return uses_of(device_blocks(recording))


def uses_of(devices: Iterable[DeviceBlocks]) -> dict[int, Maxima]:
    """Return the levels of `uses` for blocks that are known already."""
    return {
        each.device: {"largest operation": _largest_operation(each), "used arrays": _used(each)}
        for each in devices
    }


def _largest_operation(blocks: DeviceBlocks) -> tuple[int, int | None]:
    """Return the most requested bytes that one call gives to the GPU, and the call's time."""
    used, calls = blocks.used, blocks.recording.tables["api_calls"]
    requested = np.zeros(len(used.blocks), np.int64)
    requested[blocks.number] = blocks.requested
    if not len(used.call):
        return 0, None
    # Each block once for each call.
    call, block = np.divmod(distinct(used.call * len(used.blocks) + used.block), len(used.blocks))
    sums = np.zeros(calls.num_rows, np.int64)
    np.add.at(sums, call, requested[block])
    largest = int(np.argmax(sums))
    return int(sums[largest]), int(plain(calls["time"])[largest])


def _used(blocks: DeviceBlocks) -> tuple[int, int | None]:
    """Return the most requested bytes of arrays between their first and last use, and when."""
    used, chosen = blocks.used, blocks.number[blocks.is_used]
    order = np.argsort(plain(blocks.recording.tables["api_calls"]["time"]), kind="stable")
    times = plain(blocks.recording.tables["api_calls"]["time"])[order]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    begin, end = place[used.first[chosen]], place[used.last[chosen]] + 1
    begin[blocks.is_initial[blocks.is_used]] = 0
    # The work of another stream ends at an unknown time until the block's free.
    is_shared = blocks.is_shared[blocks.is_used]
    freed = used.blocks.end[chosen][is_shared]
    until = np.where(freed < 0, len(order), np.searchsorted(times, freed, side="right"))
    end[is_shared] = np.maximum(end[is_shared], until)
    changes = np.zeros(len(order) + 1, np.int64)
    np.add.at(changes, begin, blocks.requested[blocks.is_used])
    np.subtract.at(changes, end, blocks.requested[blocks.is_used])
    level = np.cumsum(changes)
    most = int(np.argmax(level))
    return int(level[most]), int(times[most])


def _of_levels(recording: RecordingData, device: int) -> Maxima:
    levels = memory_levels(recording)
    chosen = np.flatnonzero(plain(levels["device"]) == device)
    if not len(chosen):
        return {}
    times = plain(levels["time"])
    maxima: Maxima = {}
    for name in ("requested", "allocated", "active", "reserved"):
        values = plain(levels[name])[chosen]
        row = int(np.argmax(values))
        maxima[name] = (int(values[row]), int(times[chosen[row]]))
    return maxima


def _of_packing(recording: RecordingData, device: int, seconds: float) -> Maxima:
    found = packing(recording, device, seconds=seconds)
    return {"packed": (found.upper_bound, None)} if found.upper_bound else {}


def _of_device(recording: RecordingData, device: int) -> Maxima:
    samples = recording.tables["device_memory"]
    chosen = np.flatnonzero(plain(samples["device"]) == device)
    if not len(chosen):
        return {}
    used = plain(samples["used"])[chosen]
    row = int(np.argmax(used))
    return {"device": (int(used[row]), int(plain(samples["time"])[chosen[row]]))}
