"""Free and live memory in a device's segments, as seen by a request for memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.analysis.initial_state import ALLOCATED, INACTIVE, PENDING_FREE
from gpuviz.analysis.pools import TORCH_OWNER, are_of
from gpuviz.out_of_memory.stream_handles import StreamHandles

if TYPE_CHECKING:
    from gpuviz._core import MemoryState


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Memory of one pool and stream, in bytes.

    Attributes:
        pool: An id of ``pools``.
        stream: An id of ``streams``; of streams with one handle, the last.
        name: Their names.
        is_destroyed: Whether the stream is destroyed, so that nothing can be requested on it.
        reserved: Bytes in segments.
        free: Bytes in free blocks.
        largest: Size of the largest free block.
        pending: Bytes in blocks that wait for other streams.
    """

    pool: int
    stream: int
    name: str
    is_destroyed: bool
    reserved: int
    free: int
    largest: int
    pending: int


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Live blocks whose free would make a request fit.

    Attributes:
        bytes: Their total size.
        stacks: The stacks that allocated them with their bytes, largest first.
        blocks: Their number.
        addresses: The address and size of each.
        places: The pool and stream of each; those of the request if empty.
    """

    bytes: int
    stacks: tuple[tuple[int, int], ...]
    blocks: int
    addresses: tuple[tuple[int, int], ...] = ()
    places: tuple[tuple[int, int], ...] = ()


class Layout:
    """The segments and blocks of one allocator on one device in a state.

    Attributes:
        reserved: Bytes in segments.
        outside_segments: Bytes of live blocks outside known segments, for allocators that do not
            expose their segments.

    Args:
        state: The state.
        device: The ordinal.
        handles: The streams at that time.
        of_torch: Whether the allocator is torch's own, which others may be recorded beside.
    """

    def __init__(
        self, state: "MemoryState", device: int, handles: StreamHandles, *, of_torch: bool
    ) -> None:
        self._handles = handles
        all_segments, all_blocks = state.segments(), state.blocks()

        def is_own(columns: dict[str, Any]) -> Any:
            return (columns["device"] == device) & are_of(columns["pool"], torch=of_torch)

        own = is_own(all_segments)
        self._segments = {name: column[own] for name, column in all_segments.items()}
        self._segments["stream"] = handles.holders(self._segments["stream"])
        chosen = is_own(all_blocks)
        blocks = {name: column[chosen] for name, column in all_blocks.items()}
        blocks["stream"] = handles.holders(blocks["stream"])
        inside = blocks["segment"] >= 0
        self._allocated = blocks["state"] == ALLOCATED
        self._sizes = blocks["size"].astype(np.int64)
        self._all = blocks
        self._blocks = {name: column[inside] for name, column in blocks.items()}
        self._blocks["size"] = self._sizes[inside]
        self._blocks["segment"] = (np.cumsum(own) - 1)[self._blocks["segment"]]
        self._segments["size"] = self._segments["size"].astype(np.int64)
        self.reserved = int(self._segments["size"].sum())
        self.outside_segments = int(self._sizes[~inside].sum())

    @property
    def idle_segments(self) -> int:
        """Bytes in segments with no block in use or waiting, which can be released at once."""
        used = np.zeros(len(self._segments["size"]), bool)
        used[self._blocks["segment"][self._blocks["state"] != INACTIVE]] = True
        return int(self._segments["size"][~used].sum())

    @property
    def inactive_split(self) -> int:
        """Free bytes in segments that are partly in use or waiting."""
        free = int(self._blocks["size"][self._blocks["state"] == INACTIVE].sum())
        return free - self.idle_segments

    def totals(self) -> dict[str, int]:
        """Return allocated, active, reserved and pending bytes, named as in `OutOfMemory`."""
        allocated = int(self._sizes[self._allocated].sum())
        pending = int(self._sizes[self._all["state"] == PENDING_FREE].sum())
        return {
            "allocated": allocated,
            "allocated_blocks": int(self._allocated.sum()),
            "active": allocated + pending,
            "reserved": self.reserved,
            "pending": pending,
        }

    def available_to(self, pool: int, stream: int) -> dict[str, int]:
        """Return the memory available to a pool and stream, named as in `FailedRequest`."""
        blocks, segments = self._blocks, self._segments
        own = (blocks["pool"] == pool) & (blocks["stream"] == stream)
        free, pending = blocks["state"] == INACTIVE, blocks["state"] == PENDING_FREE
        runs, run_is_own = self._runs(own)
        in_use = np.zeros(len(segments["size"]), bool)
        in_use[blocks["segment"][blocks["state"] == ALLOCATED]] = True
        waits = np.zeros(len(segments["size"]), bool)
        waits[blocks["segment"][pending]] = True
        in_default_pool = np.isin(segments["pool"] // 2, (0, TORCH_OWNER))
        return {
            "own_block": _largest(blocks["size"][own & free]),
            "own_run": _largest(runs[run_is_own]),
            "any_run": _largest(runs),
            "pending_segments": int(segments["size"][~in_use & waits & in_default_pool].sum()),
            "idle_segments": int(segments["size"][~in_use].sum()),
            "cached": int(blocks["size"][free].sum()),
            "pending": int(blocks["size"][pending].sum()),
        }

    def free_memory(self, name: Callable[[int, int], str]) -> tuple[FreeMemory, ...]:
        """Return the memory of each pool and stream, named by ``name``, most free bytes first."""
        segments, blocks = self._segments, self._blocks
        keys = zip(segments["pool"].tolist(), segments["stream"].tolist(), strict=True)
        rows = []
        for pool, stream in sorted(set(keys)):
            of_segment = (segments["pool"] == pool) & (segments["stream"] == stream)
            of_block = (blocks["pool"] == pool) & (blocks["stream"] == stream)
            free = blocks["size"][of_block & (blocks["state"] == INACTIVE)]
            waiting = blocks["size"][of_block & (blocks["state"] == PENDING_FREE)]
            rows.append(
                FreeMemory(
                    pool=pool,
                    stream=stream,
                    name=name(pool, stream),
                    is_destroyed=self._handles.is_destroyed(stream),
                    reserved=int(segments["size"][of_segment].sum()),
                    free=int(free.sum()),
                    largest=_largest(free),
                    pending=int(waiting.sum()),
                ),
            )
        return tuple(sorted(rows, key=lambda row: -row.free))

    def least_obstacle(self, pool: int, stream: int, size: int) -> Obstacle | None:
        """Return the live blocks with the fewest bytes in ``size`` bytes of adjacent blocks.

        Only segments of the given pool and stream count, since only there the request can be
        served. None if no segment is large enough. Blocks that wait for another stream count as
        free.
        """
        blocks = self._blocks
        own = (blocks["pool"] == pool) & (blocks["stream"] == stream)
        sizes, segment = blocks["size"][own], blocks["segment"][own]
        in_use = blocks["state"][own] == ALLOCATED
        ends = np.cumsum(sizes)
        live = np.concatenate([[0], np.cumsum(np.where(in_use, sizes, 0))])
        # The shortest run from each block on; a longer one has no fewer live bytes.
        last = np.searchsorted(ends, ends - sizes + size)
        first = np.flatnonzero(last < len(ends))
        first = first[segment[first] == segment[last[first]]]
        if not len(first):
            return None
        best = first[np.argmin(live[last[first] + 1] - live[first])]
        chosen = np.arange(best, last[best] + 1)
        chosen = chosen[in_use[chosen]]
        columns = (blocks["stack"][own][chosen], blocks["address"][own][chosen], sizes[chosen])
        return obstacle_of(*(column.tolist() for column in columns))

    def least_pins(self, size: int) -> Obstacle | None:
        """Return live blocks without which segments of ``size`` bytes could be released.

        Segments with the smallest share of live bytes come first. Blocks that wait for another
        stream count as free. None if all segments together are too small, or none is needed.
        """
        blocks, sizes = self._blocks, self._segments["size"]
        in_use = blocks["state"] == ALLOCATED
        live = np.bincount(blocks["segment"][in_use], blocks["size"][in_use], len(sizes))
        order = np.argsort(live / np.maximum(sizes, 1), kind="stable")
        order = order[live[order] > 0]
        count = int(np.searchsorted(np.cumsum(sizes[order]), size)) + 1
        if size <= 0 or count > len(order):
            return None
        chosen = in_use & np.isin(blocks["segment"], order[:count])
        names = ("stack", "address", "size", "pool", "stream")
        stacks, addresses, sizes, *places = (blocks[name][chosen].tolist() for name in names)
        return obstacle_of(stacks, addresses, sizes, tuple(zip(*places, strict=True)))

    def _runs(self, own: Any) -> tuple[Any, Any]:
        """Return the size of each run of blocks that are not in use, and whether it is ``own``."""
        blocks = self._blocks
        idle = np.flatnonzero(blocks["state"] != ALLOCATED)
        if not len(idle):
            return np.zeros(0, np.int64), np.zeros(0, bool)
        segment = blocks["segment"][idle]
        begins = np.ones(len(idle), bool)
        begins[1:] = (np.diff(idle) != 1) | (np.diff(segment) != 0)
        starts = np.flatnonzero(begins)
        return np.add.reduceat(blocks["size"][idle], starts), own[idle[starts]]


def obstacle_of(
    stacks: list[int],
    addresses: list[int],
    sizes: list[int],
    places: tuple[tuple[int, int], ...] = (),
) -> Obstacle:
    """Return live blocks by their stacks, addresses, sizes, and pools and streams."""
    by_stack: dict[int, int] = {}
    for stack, size in zip(stacks, sizes, strict=True):
        by_stack[stack] = by_stack.get(stack, 0) + size
    most_first = sorted(by_stack.items(), key=lambda item: -item[1])
    blocks = tuple(zip(addresses, sizes, strict=True))
    return Obstacle(sum(sizes), tuple(most_first), len(sizes), blocks, places)


def _largest(sizes: Any) -> int:
    return int(sizes.max(initial=0))
