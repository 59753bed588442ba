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
    """What ran in a window of a device or a stream, in ns; I are the intervals of activities.

    Activities are kernels, copies, memsets and graph launches, cut where the window ends. Copies
    are those of kind ``memcpy``; memsets and graphs as a whole only make busy. Ranges on streams
    are no work of the GPU. An activity that ends before it begins takes no time.

    Idle time T - busy is split into five parts whose sum it is. Each ns of it goes to the first
    cause of these that fits, where n is the activity that begins next. HTA gives a whole gap one
    cause; here each of its parts has its own.

    1. dependency: n's launch call had begun, and something that n's stream had been told to wait
       for before (``stream_wait_event``, joined by ``event_sync_id``) had not completed. That is
       when the GPU came by the event's record or, if that is not known, the latest end of what was
       launched on the record's stream before it. Order of calls is that of correlation ids.
       The waiting that CUDA's default stream implies is not recorded, hence unknown here.
    2. allocation: a CUDA call that allocates, frees, maps or pins memory was running in any thread.
    3. synchronization: the thread that was to launch n was inside a call that blocks: a
       synchronize, a synchronous copy, or an asynchronous one of pageable memory.
    4. host: n's launch call had not returned (HTA's host_wait).
    5. unknown: the rest, such as launch latency. After the last activity, or if n has no
       ``api_calls`` row, only allocation and unknown can be told.

    Attributes:
        device: Ordinal.
        start: Begin of the window; by default the first begin of the device's activities.
        end: End of the window; by default the last end of the device's activities.
        count: Activities that ran in the window; those without length if they lie in it.
        sum_ns: Σ|I|.
        busy_ns: |∪I|.
        kernel_ns: |∪kernels|.
        copy_ns: |∪copies|.
        kernel_copy_ns: |∪copies ∩ ∪kernels|.
        kernel_kernel_ns: Time with at least two kernels at once.
        idle_host_ns: Cause 4: the host was late.
        idle_dependency_ns: Cause 1: an event was waited for that had not completed.
        idle_synchronization_ns: Cause 3: the host was blocked before the next launch.
        idle_allocation_ns: Cause 2: memory was allocated or freed.
        idle_unknown_ns: Cause 5: none that is known.
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
        """|∪copies minus ∪kernels|: copies that no kernel hid."""
        return self.copy_ns - self.kernel_copy_ns

    @property
    def busy(self) -> float:
        """Share of the window in which something ran: |∪I| / T; at most 1.

        Unlike the utilization of Nsight Systems, which adds up what runs at once.
        """
        return _share(self.busy_ns, self.window_ns)

    @property
    def concurrency(self) -> float:
        """Mean number of activities at once while something ran: Σ|I| / |∪I|."""
        return _share(self.sum_ns, self.busy_ns)

    @property
    def kernel_copy_overlap(self) -> float:
        """Share of copying that kernels hid: |∪copies ∩ ∪kernels| / |∪copies|.

        The form of HTA's communication-computation overlap, with copies for communication.
        """
        return _share(self.kernel_copy_ns, self.copy_ns)

    @property
    def kernel_kernel_overlap(self) -> float:
        """Share of kernel time with at least two kernels at once: of |∪kernels|."""
        return _share(self.kernel_kernel_ns, self.kernel_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOverlap(LaneOverlap):
    """What ran on a device in a window; see `LaneOverlap`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOverlap(LaneOverlap):
    """What ran on a stream in the window of its device; see `LaneOverlap`.

    Attributes:
        stream: Id in the table ``streams``.
    """

    stream: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """How well a recording's GPU work overlaps; see `LaneOverlap` for the formulas.

    Attributes:
        devices: The devices that have activities, ascending.
        streams: Their streams that have activities, by device and id.
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
        device: Ordinal; all devices that have activities if None.
        start: Begin of the window in ns; each device's first begin if None.
        end: End of the window in ns; each device's last end if None.

    Raises:
        ValueError: The recording has no such device, the window ends before it begins, or a bound
            is no whole number.
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
    """Return the columns of GPU work for the native core; ranges on streams are none."""
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
