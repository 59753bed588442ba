"""Busy time, overlap of kernels and copies, and causes of idle time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz import _core
from gpuviz.analysis.calls import CallKind, call_kinds
from gpuviz.analysis.columns import codes, plain
from gpuviz.analysis.moments import as_ns
from gpuviz.recording.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from gpuviz.recording.recording import Recording

_OTHER, _KERNEL, _COPY = range(3)
_HOST_WAIT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneOverlap:
    """Activity in a window of a device or a stream, in ns; I are the intervals of activities.

    Activities are kernels, copies, memsets and graph launches, clipped to the window. Copies are
    those of kind ``memcpy``; memsets and whole graphs count as busy only. Ranges on streams do not
    count. An activity that ends before it begins has duration 0.

    Idle time T - busy is the sum of five parts. Each ns goes to the first of these causes that
    applies, where n is the next activity. HTA assigns one cause to a whole gap; here each part of a
    gap has its own cause.

    1. dependency: n's launch call had begun, and an event for which n's stream had to wait
       (``stream_wait_event``, joined by ``event_sync_id``) had not completed. It completes when the
       GPU reaches the event's record; if that is unknown, at the latest end of the activities
       launched before on the record's stream. Calls are ordered by correlation id. The implicit
       waits of CUDA's default stream are not recorded, so they count as unknown.
    2. allocation: a CUDA call that allocates, frees, maps or pins memory was running in any thread.
    3. synchronization: the thread that launched n was inside a blocking call: a synchronization, a
       synchronous copy, or an asynchronous copy of pageable memory.
    4. host: n's launch call had not returned (HTA's host_wait).
    5. unknown: the rest, such as launch latency. After the last activity, or if n has no
       ``api_calls`` row, the only possible causes are allocation and unknown.

    Attributes:
        device: Ordinal.
        start: Start of the window; by default the start of the device's first activity.
        end: End of the window; by default the end of the device's last activity.
        count: Activities that ran in the window, including those of duration 0 in it.
        sum_ns: Σ|I|.
        busy_ns: |∪I|.
        kernel_ns: |∪kernels|.
        copy_ns: |∪copies|.
        kernel_copy_ns: |∪copies ∩ ∪kernels|.
        kernel_kernel_ns: Time with at least two concurrent kernels.
        idle_host_ns: Cause 4: the host was late.
        idle_dependency_ns: Cause 1: the stream waited for an event.
        idle_synchronization_ns: Cause 3: the host was blocked before the next launch.
        idle_allocation_ns: Cause 2: memory was allocated or freed.
        idle_unknown_ns: Cause 5: no known cause.
    """

    device: int
    start: int
    end: int
    count: int
    sum_ns: int
    busy_ns: int
    kernel_ns: int
    copy_ns: int
    kernel_copy_ns: int
    kernel_kernel_ns: int
    idle_host_ns: int
    idle_dependency_ns: int
    idle_synchronization_ns: int
    idle_allocation_ns: int
    idle_unknown_ns: int

    @property
    def window_ns(self) -> int:
        """T: the length of the window."""
        return self.end - self.start

    @property
    def idle_ns(self) -> int:
        """T - |∪I|: the sum of the five ``idle_*_ns``."""
        return self.window_ns - self.busy_ns

    @property
    def exposed_copy_ns(self) -> int:
        """|∪copies minus ∪kernels|: copy time without kernels."""
        return self.copy_ns - self.kernel_copy_ns

    @property
    def busy(self) -> float:
        """Share of the window in which an activity ran: |∪I| / T; at most 1.

        The utilization of Nsight Systems, in contrast, adds up concurrent activities.
        """
        return _share(self.busy_ns, self.window_ns)

    @property
    def concurrency(self) -> float:
        """Mean number of concurrent activities while any ran: Σ|I| / |∪I|."""
        return _share(self.sum_ns, self.busy_ns)

    @property
    def kernel_copy_overlap(self) -> float:
        """Share of the copy time hidden by kernels: |∪copies ∩ ∪kernels| / |∪copies|.

        Like HTA's communication-computation overlap, with copies as communication.
        """
        return _share(self.kernel_copy_ns, self.copy_ns)

    @property
    def kernel_kernel_overlap(self) -> float:
        """Share of |∪kernels| with at least two concurrent kernels."""
        return _share(self.kernel_kernel_ns, self.kernel_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOverlap(LaneOverlap):
    """Activity on a device in a window; see `LaneOverlap`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOverlap(LaneOverlap):
    """Activity on a stream in the window of its device; see `LaneOverlap`.

    Attributes:
        stream: Id in the table ``streams``.
    """

    stream: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """Overlap of a recording's activities; see `LaneOverlap` for the formulas.

    Attributes:
        devices: The devices with activities, in ascending order.
        streams: Their streams with activities, by device and id.
    """

    devices: tuple[DeviceOverlap, ...]
    streams: tuple[StreamOverlap, ...]


def overlap(
    recording: "Recording",
    device: int | None = None,
    start: int | None = None,
    end: int | None = None,
) -> Overlap:
    """Return busy time, concurrency, overlap and the causes of idle time.

    Args:
        recording: The recording.
        device: Ordinal; all devices with activities if None.
        start: Start of the window in ns; the start of each device's first activity if None.
        end: End of the window in ns; the end of each device's last activity if None.

    Raises:
        ValueError: The recording has no such device, the window ends before it begins, or a bound
            is not an integer.
    """
    if device is not None:
        recording.device_or_first(device)
    start = None if start is None else as_ns(start, "start")
    end = None if end is None else as_ns(end, "end")
    if start is not None and end is not None and end < start:
        raise ValueError(f"the window must not end before it starts, got {start} to {end} ns")
    lanes = _core.overlap(
        timed_activities(recording.tables),
        timed_calls(recording.tables),
        timed_synchronizations(recording.tables),
        start,
        end,
    )
    chosen = [lane for lane in lanes if device in (None, lane["device"])]
    return Overlap(
        tuple(DeviceOverlap(**lane) for lane in chosen if "stream" not in lane),
        tuple(StreamOverlap(**lane) for lane in chosen if "stream" in lane),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def timed_activities(tables: "Mapping[str, pa.Table]") -> "dict[str, NDArray[Any]]":
    """Return the columns of activities for the native core, without ranges on streams."""
    import numpy as np

    table = tables["activities"]
    known = DICTIONARIES["activities", "kind"]
    kinds = codes(table["kind"], known)
    names = ("time", "end", "device", "stream", "correlation")
    columns = {name: plain(table[name]) for name in names}
    work_of = np.full(len(known) + 1, _OTHER, np.uint8)
    work_of[known.index("kernel")] = _KERNEL
    work_of[known.index("memcpy")] = _COPY
    columns["work"] = work_of[kinds]
    ranges = kinds == known.index("range")
    if ranges.any():
        return {name: column[~ranges] for name, column in columns.items()}
    return columns


def timed_calls(tables: "Mapping[str, pa.Table]") -> "dict[str, NDArray[Any]]":
    """Return the columns of CUDA calls for the native core."""
    table = tables["api_calls"]
    kinds = call_kinds(tables)
    kinds[kinds > CallKind.QUERY] = CallKind.SYNCHRONIZE
    names = ("time", "end", "thread", "correlation")
    return {name: plain(table[name]) for name in names} | {"kind": kinds}


def timed_synchronizations(tables: "Mapping[str, pa.Table]") -> "dict[str, NDArray[Any]]":
    """Return the columns of records and waits for the native core."""
    import numpy as np

    table = tables["synchronizations"]
    kinds = np.minimum(codes(table["kind"], DICTIONARIES["synchronizations", "kind"]), _HOST_WAIT)
    names = ("time", "end", "stream", "event_sync_id", "correlation")
    return {name: plain(table[name]) for name in names} | {"kind": kinds.astype(np.uint8)}
