"""Blocks from their allocation to their free."""

from dataclasses import dataclass

import numpy as np

from gpuviz import _core
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData


@dataclass(frozen=True, eq=False, slots=True)
class Lifetimes:
    """One entry for each block of a recording, in the order of their allocations.

    Attributes:
        alloc: The row of ``memory_events`` that allocated the block.
        free: The row that freed it, which requests the free if the block waited for streams; the
            number of rows if it was never freed.
        address: Device addresses.
        size: Bytes, rounded by the allocator.
        requested: Bytes that the program asked for.
        device: Ordinals.
        stream: Ids of ``streams``.
        stack: Ids of ``stacks``.
        begin: When it was allocated, in ns since the recording's start.
        end: When it was freed, or -1.
    """

    alloc: np.ndarray
    free: np.ndarray
    address: np.ndarray
    size: np.ndarray
    requested: np.ndarray
    device: np.ndarray
    stream: np.ndarray
    stack: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.alloc)

    @property
    def end_or_never(self) -> np.ndarray:
        """When each was freed, later than any time if never."""
        return np.where(self.end < 0, np.iinfo(np.int64).max, self.end)


def lifetimes(recording: RecordingData) -> Lifetimes:
    """Return the lifetime of every block, initial ones too.

    An event that contradicts an earlier block ends it. Blocks that end within the initial events
    are left out.
    """
    events = recording.tables["memory_events"]
    initial = recording.manifest.initial_events
    found = [
        _core.lifetimes(recording.memory_columns, initial, device) for device in recording.devices
    ]
    nothing = np.zeros(0, np.int64)
    alloc, free = (
        np.concatenate([nothing, *(each[name] for each in found)]) for name in ("begin", "free")
    )
    order = np.argsort(alloc)
    alloc, free = alloc[order], free[order]
    times = plain(events["time"])
    columns = {name: plain(events[name])[alloc] for name in ("address", "size", "device")}
    return Lifetimes(
        alloc=alloc,
        free=free,
        **columns,
        requested=plain(events["requested_size"])[alloc],
        stream=plain(events["stream"])[alloc],
        stack=plain(events["stack"])[alloc],
        begin=times[alloc],
        end=np.append(times, -1)[free],
    )
