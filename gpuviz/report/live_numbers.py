"""The headline numbers of a recorder while it records."""

from typing import TYPE_CHECKING

from gpuviz._core import MemoryState
from gpuviz.analysis.fragmentation import fragmentation_of
from gpuviz.analysis.state import initial_state
from gpuviz.quantities import format_bytes, format_count, format_duration, format_share
from gpuviz.report.summary import Number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.recorder.status import RecorderStatus
    from gpuviz.recording.recording import Recording


class LiveNumbers:
    """The numbers of a recorder again and again: what happened before is not gone through twice."""

    def __init__(self) -> None:
        self._of: tuple[int, int, int] | None = None
        self._state = MemoryState()
        self._rows = 0

    def of(self, recording: "Recording", status: "RecorderStatus") -> list[Number]:
        """Return the numbers of a recorder as of now, ready to print, for its first device.

        Args:
            recording: What it has recorded until now.
            status: Of the same recorder.
        """
        return [
            *(_memory(recording, self._state_of(recording)) if recording.devices else ()),
            *_streams(recording, status),
            _lost(status),
            _own_cost(recording, status),
        ]

    def _state_of(self, recording: "Recording") -> MemoryState:
        manifest = recording.manifest
        of = (manifest.start_unix_ns, manifest.initial_events, manifest.dropped_oldest)
        if of != self._of:
            self._of, self._state, self._rows = of, initial_state(recording), of[1]
        columns = recording.memory_columns
        self._state.apply(columns, self._rows)
        self._rows = recording.table("memory_events").num_rows
        return self._state


def _memory(recording: "Recording", state: MemoryState) -> "Iterator[Number]":
    device = recording.device_or_first(None)
    stats = state.statistics(device)
    now = fragmentation_of(state, device)
    allocated, peak = (stats[f"allocated_bytes.all.{when}"] for when in ("current", "peak"))
    yield Number("Allocated", format_bytes(allocated), f"peak {format_bytes(peak)}")
    yield Number("Reserved", format_bytes(now.reserved), f"{format_bytes(now.free)} of it free")
    outside = format_bytes(now.free - now.largest_free)
    detail = f"{outside} free outside the largest free block"
    yield Number("Fragmentation", format_share(now.external), detail)
    unused = _unused(recording, device)
    if unused is None:
        yield Number("Largest free block", format_bytes(now.largest_free), "in segments")
        return
    possible = max(now.largest_free, unused + now.cached_whole)
    detail = f"{format_bytes(unused)} unused, {format_bytes(now.cached_whole)} can be given back"
    yield Number("Can be allocated now", format_bytes(possible), detail)


def _unused(recording: "Recording", device: int) -> int | None:
    """Return the bytes of a device that nobody uses, by the latest sample; None if unknown."""
    import pyarrow.compute as pc

    samples = recording.table("device_memory")
    samples = samples.filter(pc.equal(samples["device"], device))
    sizes = {row["id"]: row["total_memory"] for row in recording.table("devices").to_pylist()}
    total = sizes.get(device) or 0
    if not samples.num_rows or not total:
        return None
    return max(0, total - int(samples["used"][-1].as_py()))


def _streams(recording: "Recording", status: "RecorderStatus") -> "Iterator[Number]":
    if not status.streams:
        yield Number("GPU busy", "unknown", "streams are not recorded")
        return
    lanes = recording.overlap().devices
    if not lanes:
        yield Number("GPU busy", "0 %", "nothing ran yet")
        return
    lane = lanes[0]
    yield Number("GPU busy", format_share(lane.busy), f"of {format_duration(lane.window_ns)}")
    if lane.copy_ns:
        hidden = format_share(lane.kernel_copy_overlap)
        yield Number("Copies hidden", hidden, f"of {format_duration(lane.copy_ns)} of copies")


def _lost(status: "RecorderStatus") -> Number:
    lost = status.dropped + status.dropped_activities
    oldest = format_count(status.dropped_oldest)
    return Number("Lost", format_count(lost), f"{oldest} of the oldest given up")


def _own_cost(recording: "Recording", status: "RecorderStatus") -> Number:
    share = status.own_cost_ns / max(recording.duration_ns, 1)
    return Number("Own cost", format_duration(status.own_cost_ns), f"{format_share(share)} of time")
