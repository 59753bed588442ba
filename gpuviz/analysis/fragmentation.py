"""Fragmentation of reserved memory at a moment."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpuviz.analysis.initial_state import ALLOCATED, PENDING_FREE
from gpuviz.analysis.state import state_at
from gpuviz.data.recording_data import Moment, RecordingData

if TYPE_CHECKING:
    from gpuviz._core import MemoryState


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """The parts of one device's reserved memory at a moment, in bytes.

    ``reserved = requested + rounding + pending_free + inactive_split + cached_whole``, exactly.

    Attributes:
        device: Ordinal.
        reserved: V, the bytes of the known segments.
        requested: R, the requested bytes of allocated blocks.
        rounding: A - R, bytes added by rounding and unsplit remainders.
        pending_free: Pk = Ac - A, freed blocks that wait for another stream.
        inactive_split: IS, free blocks of partly used segments: free, but not returnable to the
            device. As in torch, free blocks of expandable segments do not count, because their
            pages can be unmapped.
        cached_whole: CW = V - Ac - IS, free memory that ``empty_cache`` can return.
        free: The bytes of all free blocks: IS + CW.
        largest_free: The bytes of the largest free block.
        outside: Active bytes outside known segments, for allocators that do not expose their
            segments; not included in any other number here.
        pools: One row for each pool and stream that has segments: ``pool``, ``stream``,
            ``reserved``, ``free``, ``largest_free`` and ``external``.
    """

    device: int
    reserved: int
    requested: int
    rounding: int
    pending_free: int
    inactive_split: int
    cached_whole: int
    free: int
    largest_free: int
    outside: int
    pools: pa.Table

    @property
    def internal(self) -> float:
        """Share of allocated bytes that were not requested: 1 - R / A (Randell, CACM 1969)."""
        allocated = self.requested + self.rounding
        return self.rounding / allocated if allocated else 0.0

    @property
    def external(self) -> float:
        """Share of free bytes outside the largest free block: 1 - largest / free.

        Assumes that blocks of all pools and streams can serve any request; ``pools`` has the values
        of each. DrGPUM (ASPLOS 2023) uses the same formula for each object.
        """
        return _external(self.free, self.largest_free)

    @property
    def utilization(self) -> float:
        """Share of reserved bytes that are active: Ac / V; 1 - this is GMLake's fragmentation.

        GMLake (ASPLOS 2024) computes it from the peaks of both.
        """
        active = self.requested + self.rounding + self.pending_free
        return active / self.reserved if self.reserved else 0.0


def fragmentation(
    recording: RecordingData,
    at: Moment = None,
    device: int | None = None,
) -> Fragmentation:
    """Return the parts of one device's reserved memory at a moment.

    Raises:
        ValueError: The recording has no such device.
    """
    device = recording.device_or_first(device)
    return fragmentation_of(state_at(recording, at, device), device)


def fragmentation_of(state: "MemoryState", device: int) -> Fragmentation:
    """Return the parts of one device's reserved memory in a state."""
    blocks = _of_device(state.blocks(), device)
    outside = blocks["segment"] < 0
    inside = {name: column[~outside] for name, column in blocks.items()}
    sizes, states = inside["size"], inside["state"]
    allocated = int(sizes[states == ALLOCATED].sum())
    requested = int(inside["requested_size"][states == ALLOCATED].sum())
    pending_free = int(sizes[states == PENDING_FREE].sum())
    free_sizes = sizes[states == 0]
    free = int(free_sizes.sum())
    inactive_split = state.statistics(device)["inactive_split_bytes.all.current"]
    return Fragmentation(
        device=device,
        reserved=int(_of_device(state.segments(), device)["size"].sum()),
        requested=requested,
        rounding=allocated - requested,
        pending_free=pending_free,
        inactive_split=inactive_split,
        cached_whole=free - inactive_split,
        free=free,
        largest_free=int(free_sizes.max(initial=0)),
        outside=int(blocks["size"][outside].sum()),
        pools=_by_pool(inside, _of_device(state.segments(), device)),
    )


def _of_device(columns: dict[str, Any], device: int) -> dict[str, Any]:
    chosen = columns["device"] == device
    return {name: column[chosen] for name, column in columns.items()}


def _external(free: int, largest_free: int) -> float:
    return 1 - largest_free / free if free else 0.0


def _by_pool(blocks: dict[str, Any], segments: dict[str, Any]) -> pa.Table:
    rows = []
    keys = zip(segments["pool"].tolist(), segments["stream"].tolist(), strict=True)
    for pool, stream in sorted(set(keys)):
        of_segment = (segments["pool"] == pool) & (segments["stream"] == stream)
        of_block = (blocks["pool"] == pool) & (blocks["stream"] == stream) & (blocks["state"] == 0)
        sizes = blocks["size"][of_block]
        free, largest_free = int(sizes.sum()), int(sizes.max(initial=0))
        reserved = int(segments["size"][of_segment].sum())
        rows.append((pool, stream, reserved, free, largest_free, _external(free, largest_free)))
    names = ("pool", "stream", "reserved", "free", "largest_free", "external")
    kinds = (pa.uint32(), pa.uint32(), pa.int64(), pa.int64(), pa.int64(), pa.float64())
    columns = zip(*rows, strict=True) if rows else [[]] * len(names)
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})
