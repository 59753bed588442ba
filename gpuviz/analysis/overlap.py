"""Busy time, overlap of kernels and copies, and causes of idle time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.launches import within
from gpuviz.analysis.moments import as_ns
from gpuviz.analysis.processes import processes
from gpuviz.analysis.timed_rows import timed_activities, timed_calls, timed_synchronizations
from gpuviz.analysis.unseen import extent, is_whole, parts
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData

_WHOLE_DEVICE = -1
# What says where a lane is, and does not add up.
_PLACE = ("device", "stream", "start", "end")
_CAUSES = WORDS["idle_gaps", "cause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneOverlap:
    """Activity in a window of a device or a stream, in ns; I are the intervals of activities.

    Activities are kernels, copies, memsets and graph launches, clipped to the window. Copies are
    those from and to the host (or of unknown direction); those within and between devices are
    device copies. Memsets and whole graphs count as busy only. Ranges on streams do not count. An
    activity that ends before it begins has duration 0.

    Idle time T - busy is the sum of seven parts. Each ns goes to the first of these causes that
    applies, where n is the next activity. HTA assigns one cause to a whole gap; here each part of a
    gap has its own cause. In a window of a recording, the causes are those in the whole recording.

    1. dependency: n's launch call had begun, and an event for which n's stream had to wait
       (``stream_wait_event``, joined by ``event_sync_id``) had not completed. It completes when the
       GPU reaches the event's record; see `timed_synchronizations`. Calls are ordered by
       correlation id. The implicit waits of CUDA's default stream are not recorded.
    2. allocation: a CUDA call that allocates, frees, maps or pins memory was running in any thread.
    3. synchronization: the thread that launched n was inside a blocking call: a synchronization, a
       synchronous copy, or an asynchronous copy of pageable memory.
    4. host: n's launch call had not returned (HTA's host_wait).
    5. unrecorded_event: n is the first activity that its stream launched after a wait for an event
       whose record is not in the recording, usually because it was recorded before.
    6. gpu_busy: another stream of the device ran work that competes with n, so there may have been
       no room for it. Copies compete with copies, everything else with everything else.
    7. unknown: the rest, such as launch latency. After the last activity, or if n has no
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
        device_copy_ns: |∪device copies|.
        kernel_copy_ns: |∪copies ∩ ∪kernels|.
        kernel_kernel_ns: Time with at least two concurrent kernels.
        idle_host_ns: Cause 4: the host was late.
        idle_dependency_ns: Cause 1: the stream waited for an event.
        idle_synchronization_ns: Cause 3: the host was blocked before the next launch.
        idle_allocation_ns: Cause 2: memory was allocated or freed.
        idle_unrecorded_event_ns: Cause 5: the stream waited for an event without a record.
        idle_gpu_busy_ns: Cause 6: other streams kept the GPU busy; 0 for devices.
        idle_unknown_ns: Cause 7: no known cause.
        unseen_ns: Time in which it is not known what ran; see `gpuviz.analysis.unseen`. Nothing of
            it counts.
    """

    device: int
    start: int
    end: int
    count: int
    sum_ns: int
    busy_ns: int
    kernel_ns: int
    copy_ns: int
    device_copy_ns: int
    kernel_copy_ns: int
    kernel_kernel_ns: int
    idle_host_ns: int
    idle_dependency_ns: int
    idle_synchronization_ns: int
    idle_allocation_ns: int
    idle_unrecorded_event_ns: int
    idle_gpu_busy_ns: int
    idle_unknown_ns: int
    unseen_ns: int = 0

    @property
    def window_ns(self) -> int:
        """T: the length of the window, without the time in which streams were not recorded."""
        return self.end - self.start - self.unseen_ns

    @property
    def idle_ns(self) -> int:
        """T - |∪I|: the sum of the seven ``idle_*_ns``."""
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
        """Share of the time of host copies hidden by kernels: |∪copies ∩ ∪kernels| / |∪copies|.

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

    stream: int = 0


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
    recording: RecordingData,
    device: int | None = None,
    start: int | None = None,
    end: int | None = None,
) -> Overlap:
    """Return busy time, concurrency, overlap and the causes of idle time.

    Args:
        recording: The recording.
        device: Ordinal; all devices with activities if None.
        start: Start of the window in ns. If None, the start of the recording's own window; without
            one, the start of each device's first activity.
        end: End of the window in ns. If None, the end of the recording's own window; without one,
            the end of each device's last activity.

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
    if processes(recording):
        whole = _of_processes(recording, start, end)
        return whole if device is None else of_device(whole, device)
    bounds = recording.bounds
    activities = timed_activities(recording.tables)
    if bounds is not None:
        start = bounds[0] if start is None else start
        end = max(start, bounds[1] if end is None else end)
        activities = _clipped(activities, bounds)
    if not is_whole(recording.tables):
        first, last = extent(recording.tables)
        window = first if start is None else start, last if end is None else end
        return _overlap_of(_of_seen_parts(recording, window), device)
    lanes = _core.overlap(
        activities,
        timed_calls(recording.tables),
        timed_synchronizations(recording.tables),
        start,
        end,
    )
    if start is not None and end is not None and bounds is not None:
        lanes = _with_causes(lanes, derived(recording)["idle_gaps"], (start, end))
    return _overlap_of(lanes, device)


def _overlap_of(lanes: Sequence[dict[str, int]], device: int | None) -> Overlap:
    whole = Overlap(
        tuple(DeviceOverlap(**lane) for lane in lanes if "stream" not in lane),
        tuple(StreamOverlap(**lane) for lane in lanes if "stream" in lane),
    )
    return whole if device is None else of_device(whole, device)


@Once
def whole_overlap(recording: RecordingData) -> Overlap:
    """Return the overlap of all devices in all of their time."""
    return overlap(recording)


def _of_processes(recording: RecordingData, start: int | None, end: int | None) -> Overlap:
    """Return the overlap within each process; no cause of idle time is in another process."""
    found = [overlap(each.recording, None, start, end) for each in processes(recording)]
    return Overlap(
        tuple(sorted((lane for each in found for lane in each.devices), key=_lane)),
        tuple(sorted((lane for each in found for lane in each.streams), key=_lane)),
    )


def _of_seen_parts(recording: RecordingData, window: tuple[int, int]) -> list[dict[str, int]]:
    """Return the lanes of a window: the sums over the parts in which streams were recorded."""
    sums: dict[tuple[int, int], dict[str, int]] = {}
    unseen_ns = window[1] - window[0]
    for part in parts(recording.tables, window):
        unseen_ns -= part.end - part.begin
        bounds = part.begin, part.end
        activities = _clipped(timed_activities(part.tables), bounds)
        calls, waits = timed_calls(part.tables), timed_synchronizations(part.tables)
        for lane in _core.overlap(activities, calls, waits, *bounds):
            known = sums.setdefault(_key(lane), dict.fromkeys(lane, 0))
            sums[_key(lane)] = {name: known[name] + value for name, value in lane.items()}
    lanes = [
        total | {name: _idle_lane(key, window)[name] for name in total if name in _PLACE}
        for key, total in sums.items()
    ]
    gaps = derived(recording)["idle_gaps"]
    return _with_causes(lanes, gaps, window, unseen_ns)


def _lane(lane: LaneOverlap) -> tuple[int, int]:
    return lane.device, getattr(lane, "stream", _WHOLE_DEVICE)


def of_device(whole: Overlap, device: int) -> Overlap:
    """Return the part of an overlap that is about one device."""
    return Overlap(
        tuple(each for each in whole.devices if each.device == device),
        tuple(each for each in whole.streams if each.device == device),
    )


def _clipped(activities: dict[str, np.ndarray], bounds: tuple[int, int]) -> dict[str, np.ndarray]:
    """Return the parts of activities within bounds; those that only touch them are left out."""
    time, end = (np.clip(activities[name], *bounds) for name in ("time", "end"))
    kept = (time < end) | (activities["time"] >= activities["end"])
    clipped = activities | {"time": time, "end": end}
    return {name: column[kept] for name, column in clipped.items()}


def _with_causes(
    lanes: Sequence[dict[str, int]],
    gaps: pa.Table,
    window: tuple[int, int],
    unseen_ns: int = 0,
) -> list[dict[str, int]]:
    """Return lanes with the causes of ``idle_gaps``, also those without activities, in order.

    Idle time that is in no gap has no known cause.
    """
    begin, end = within(gaps, window)
    streams = plain(gaps["stream"]).astype(np.int64)
    streams[streams == 0] = _WHOLE_DEVICE
    pairs = np.stack([plain(gaps["device"]).astype(np.int64), streams])
    keys, numbers = np.unique(pairs, axis=1, return_inverse=True)
    cells = numbers.ravel() * len(_CAUSES) + codes(gaps["cause"], _CAUSES)
    sums = np.bincount(cells, end - begin, minlength=keys.shape[1] * len(_CAUSES))
    times = sums.astype(np.int64).reshape(-1, len(_CAUSES)).tolist()
    of_lanes = dict(zip(zip(*keys.tolist(), strict=True), times, strict=True))
    found = {_key(lane): lane for lane in lanes}
    for key in of_lanes.keys() | found.keys():
        lane = found.setdefault(key, _idle_lane(key, window))
        known = dict(zip(_CAUSES, of_lanes.get(key, ()), strict=False))
        for cause in _CAUSES:
            lane[f"idle_{cause}_ns"] = known.get(cause, 0)
        lane["unseen_ns"] = unseen_ns
        idle = lane["end"] - lane["start"] - unseen_ns - lane["busy_ns"]
        lane["idle_unknown_ns"] = idle - sum(known.values()) + known.get("unknown", 0)
    return [found[key] for key in sorted(found)]


def _key(lane: Mapping[str, int]) -> tuple[int, int]:
    return lane["device"], lane.get("stream", _WHOLE_DEVICE)


def _idle_lane(key: tuple[int, int], window: tuple[int, int]) -> dict[str, int]:
    device, stream = key
    lane = {field.name: 0 for field in fields(LaneOverlap)}
    lane |= {"device": device, "start": window[0], "end": window[1]}
    return lane if stream == _WHOLE_DEVICE else lane | {"stream": stream}


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
