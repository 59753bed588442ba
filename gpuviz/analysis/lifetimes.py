"""Blocks from their allocation to their free."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.columns import codes, plain
from gpuviz.recording.tables import ACTIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.recording.recording import Recording


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

    alloc: "NDArray[Any]"
    free: "NDArray[Any]"
    address: "NDArray[Any]"
    size: "NDArray[Any]"
    requested: "NDArray[Any]"
    device: "NDArray[Any]"
    stream: "NDArray[Any]"
    stack: "NDArray[Any]"
    begin: "NDArray[Any]"
    end: "NDArray[Any]"

    def __len__(self) -> int:
        return len(self.alloc)


def lifetimes(recording: "Recording") -> Lifetimes:
    """Return the lifetime of every block, initial ones too.

    A free of an address without a block is ignored. A block whose free was lost lives until the
    next allocation at its address.
    """
    import numpy as np

    events = recording.tables["memory_events"]
    action = codes(events["action"], ACTIONS)
    kinds = [ACTIONS.index(name) for name in ("alloc", "free_requested", "free_completed")]
    rows = np.flatnonzero(np.isin(action, kinds))
    address, device, time = (plain(events[name]) for name in ("address", "device", "time"))
    # By block, then in the order of events.
    rows = rows[np.lexsort((rows, address[rows], device[rows]))]
    starts = action[rows] == kinds[0]
    follows = np.zeros(len(rows), bool)
    follows[:-1] = (address[rows][1:] == address[rows][:-1]) & (
        device[rows][1:] == device[rows][:-1]
    )
    places = np.flatnonzero(starts)
    free = np.full(len(places), len(action))
    ended = follows[places]
    free[ended] = rows[places[ended] + 1]
    alloc = rows[places]
    order = np.argsort(alloc)
    alloc, free = alloc[order], free[order]
    end = np.full(len(free), -1, np.int64)
    known = free < len(action)
    end[known] = time[free[known]]
    columns = {name: plain(events[name])[alloc] for name in ("address", "size", "device")}
    return Lifetimes(
        alloc=alloc,
        free=free,
        **columns,
        requested=plain(events["requested_size"])[alloc],
        stream=plain(events["stream"])[alloc],
        stack=plain(events["stack"])[alloc],
        begin=time[alloc],
        end=end,
    )
