"""Arrays that nothing but the garbage collector frees, because reference cycles keep them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuviz.data.codes import HOST_STATES, OWN_THREADS
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.recording_data import RecordingData

if TYPE_CHECKING:
    from gpuviz.advice.arrays.device_blocks import DeviceBlocks

# What `gpuviz.ownership.holders` calls objects that only refer to one another.
CYCLE = "a reference cycle"
_COLLECTION = HOST_STATES.index("collection")
# Fewer collections may have come just when the program dropped an object that it had used.
_LEAST_COLLECTIONS = 3
# With fewer, they are rather a variable than arrays that wait.
_LEAST_ARRAYS = 2
# Of which each is looked at, the latest; a long program has thousands.
_MOST_SITES, _MOST_COLLECTIONS = 10, 100
# The longest time without a new array, compared with those before, for the same round to go on.
_MOST_PAUSE = 2


class Collections:
    """The garbage collections of a recording that took a tenth of a millisecond or longer.

    Attributes:
        begin: When each began, in ns since the recording's start, in order of time.
        end: When it ended.
        thread: The thread that it ran in.
        is_requested: Whether the program called the collector itself.
    """

    def __init__(self, recording: RecordingData) -> None:
        samples = recording.tables["host_samples"]
        rows = np.flatnonzero(codes(samples["state"], HOST_STATES) == _COLLECTION)
        begin = plain(samples["time"])[rows]
        rows = rows[np.argsort(begin, kind="stable")]
        self.begin, self.end, self.thread, stack = (
            plain(samples[name])[rows] for name in ("time", "end", "thread", "stack")
        )
        frames = recording.call_stacks.frames
        requesting = [
            each
            for each in distinct(stack).tolist()
            if any("collect(" in frame.source for frame in frames(each)[:1])
        ]
        self.is_requested = np.isin(stack, requesting)

    def of_events(self, times: np.ndarray, threads: np.ndarray) -> np.ndarray:
        """Return the number of the collection that each event was a part of; -1 without one.

        Args:
            times: The times of the events, ascending.
            threads: Their threads.
        """
        found = np.full(len(times), -1, np.int32)
        first = np.searchsorted(times, self.begin)
        last = np.searchsorted(times, self.end, side="right")
        for each in np.flatnonzero(first < last).tolist():
            within = slice(int(first[each]), int(last[each]))
            found[within][threads[within] == self.thread[each]] = each
        return found


@dataclass(frozen=True, eq=False, slots=True)
class CollectedLine:
    """A line whose arrays only the garbage collector frees.

    Attributes:
        blocks: The blocks that it has freed, or will.
        made: All blocks of the line.
        newest: How many of the newest unused ones each collection left, at least; a variable may
            keep them.
    """

    blocks: np.ndarray
    made: np.ndarray
    newest: int


def collected_blocks(device: "DeviceBlocks") -> np.ndarray:
    """Return the blocks of lines whose arrays only the garbage collector frees, in order."""
    found = [each.blocks for each in collected_lines(device)]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *found]))


def collected_lines(device: "DeviceBlocks") -> list[CollectedLine]:
    """Return the lines whose arrays only the garbage collector frees.

    Such a line makes arrays that are garbage after their last use: collections free them time and
    again, in the midst of the rounds that make them, up to the newest that is no longer used. A
    collection may free only the last of a chain of arrays, such as the layers of a model, each of
    which keeps the one before it. What an object in a cycle keeps until the program drops it waits
    for a collection as well, but that comes between two rounds, or after newer arrays.

    Of what the recording does not free, the blocks of such a line count if all that is known of
    their holders is that they are reference cycles.
    """
    collections = Collections(device.recording)
    if len(collections.begin) < _LEAST_COLLECTIONS:
        return []
    events, rows = device.recording.tables["memory_events"], device.used.blocks.free[device.number]
    threads = plain(events["thread"])
    number = np.append(collections.of_events(plain(events["time"]), threads), -1)[rows]
    if not (number >= 0).any():
        return []
    of_gpuviz = np.isin(np.append(threads, 0)[rows], _own_threads(device.recording))
    is_collected = (number >= 0) | of_gpuviz
    is_known = ~device.is_initial & ~device.is_shared & ~device.is_used_at_any_time
    is_known &= device.is_used & (device.stack != 0)
    found = []
    for site in _largest_sites(device, is_known & (number >= 0)):
        own = np.flatnonzero(is_known & (device.site == site))
        newest = _newest_left(device, collections, own, number[own])
        if newest is not None:
            blocks = np.append(own[is_collected[own]], _held_by_cycles(device, own))
            found.append(CollectedLine(blocks, own, newest))
    return found


def _largest_sites(device: "DeviceBlocks", is_chosen: np.ndarray) -> list[int]:
    """Return the lines with the most bytes in some blocks."""
    sizes = np.bincount(device.site[is_chosen], device.size[is_chosen])
    largest = np.argsort(-sizes, kind="stable")[:_MOST_SITES]
    found: list[int] = largest[sizes[largest] > 0].tolist()
    return found


def _own_threads(recording: RecordingData) -> np.ndarray:
    """Return gpuviz's own threads, which free arrays of the program only in collections."""
    threads = recording.tables["threads"].to_pylist()
    return np.array([row["id"] for row in threads if row["name"].startswith(OWN_THREADS)])


def _newest_left(
    device: "DeviceBlocks",
    collections: Collections,
    blocks: np.ndarray,
    number: np.ndarray,
) -> int | None:
    """Return how many unused arrays, the newest, collections leave while a line makes others.

    That is the fewest that any of them left; None if collections do not free the arrays of the line
    while it goes on making them.

    Args:
        device: All blocks.
        collections: The collections.
        blocks: The blocks of the line.
        number: The collection that freed each; -1 without one.
    """
    made, end = (
        getattr(device.used.blocks, name)[device.number[blocks]] for name in ("begin", "end")
    )
    order = np.argsort(made, kind="stable")
    made, end, number = made[order], end[order], number[order]
    used = device.call_times[device.used.last[device.number[blocks[order]]]]
    end = np.where(end < 0, np.iinfo(np.int64).max, end)
    left, failed = [], 0
    bounds = np.append(0, np.searchsorted(made, collections.begin))
    is_after_new = (np.diff(bounds) >= _LEAST_ARRAYS) & ~collections.is_requested
    for each in np.flatnonzero(is_after_new)[-_MOST_COLLECTIONS:].tolist():
        last = int(bounds[each + 1])
        new = slice(int(bounds[each]), last)
        is_unused = (used[new] < collections.begin[each]) & (end[new] >= collections.begin[each])
        is_freed = number[new] == each
        waited = np.flatnonzero(is_freed[is_unused])
        if len(waited) >= _LEAST_ARRAYS and last < len(made):
            newer = np.count_nonzero(is_unused) - 1 - waited[-1]
            pause = made[last] - made[last - 1] - (collections.end[each] - collections.begin[each])
            is_amid = pause <= _MOST_PAUSE * np.diff(made[new]).max()
            is_amid &= newer <= np.diff(waited).max()
            left += [int(newer)] * bool(is_amid)
        elif np.count_nonzero(is_unused) >= _LEAST_ARRAYS:
            failed += int(not len(waited))
    return min(left) if len(left) >= max(_LEAST_COLLECTIONS, failed) else None


def _held_by_cycles(device: "DeviceBlocks", blocks: np.ndarray) -> np.ndarray:
    """Return those of some blocks that the recording does not free, if only cycles hold them."""
    left: np.ndarray = blocks[device.used.blocks.end[device.number[blocks]] < 0]
    held = device.recording.tables["held_blocks"]
    rows = np.flatnonzero(plain(held["device"]) == device.device)
    addresses = device.used.blocks.address[device.number[left]]
    rows = rows[np.isin(plain(held["address"])[rows], addresses)]
    holders = {held["holder"][row].as_py() for row in rows.tolist()}
    return left if holders == {CYCLE} else left[:0]
