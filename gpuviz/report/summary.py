"""Headline numbers of a report, and of a recording in progress."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.text import left_out
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.fragmentation import fragmentation
from gpuviz.analysis.launches import durations
from gpuviz.analysis.levels import memory_levels
from gpuviz.analysis.peak import peak
from gpuviz.analysis.processes import device_names, part_of_device
from gpuviz.analysis.retries import succeeded_on_retry
from gpuviz.analysis.statistics import statistics
from gpuviz.analysis.steady_state import steady_states
from gpuviz.data.columns import plain
from gpuviz.quantities import (
    format_bytes,
    format_count,
    format_counted,
    format_duration,
    format_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.data.recording_data import RecordingData
    from gpuviz.recorder.status import DeviceStatistics, RecorderStatistics
    from gpuviz.recording import Recording


@dataclass(frozen=True, slots=True)
class Number:
    """A headline number: name, value and explanation."""

    name: str
    value: str
    detail: str


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """The headline numbers of one device, in bytes, nanoseconds and counts.

    Attributes:
        device: Ordinal.
        label: ``Device 0``, or the process and its GPU in a merged recording.
        name: The device's name; empty if unknown.
        total_memory: Bytes of the device; 0 if unknown.
        kind: ``cuda``, ``simulated`` or ``recorded``; empty if unknown.
        allocated_peak: The maximum of allocated bytes.
        allocated_peak_ns: The first time of this maximum.
        reserved_peak: The maximum of reserved bytes.
        reserved_peak_ns: The first time of this maximum.
        allocations: Allocations during the recording.
        allocated_end: Bytes allocated at the end.
        allocations_end: Blocks allocated at the end.
        reserved_at_peak: Bytes reserved at the peak of allocated bytes.
        free_at_peak: Bytes in free blocks at that time.
        largest_free_at_peak: Size of the largest free block at that time.
        fragmentation_at_peak: Share of the free bytes outside the largest free block.
        out_of_memory: Allocations that failed.
        retries: Allocations that succeeded only after cached segments were released.
    """

    device: int
    label: str
    name: str
    total_memory: int
    kind: str
    allocated_peak: int
    allocated_peak_ns: int
    reserved_peak: int
    reserved_peak_ns: int
    allocations: int
    allocated_end: int
    allocations_end: int
    reserved_at_peak: int
    free_at_peak: int
    largest_free_at_peak: int
    fragmentation_at_peak: float
    out_of_memory: int
    retries: int

    @property
    def title(self) -> str:
        """The device's title: ``Device 0: NVIDIA H100, 80.0 GiB``."""
        memory = format_bytes(self.total_memory) if self.total_memory else ""
        parts = ", ".join(part for part in (self.name, memory) if part)
        return f"{self.label}: {parts}" if parts else self.label


def summarize(recording: "Recording", device: int) -> DeviceSummary:
    """Return the headline numbers of one device."""
    own = part_of_device(recording, device)
    stats = statistics(own, device)
    highest = peak(own, device)
    at_peak = fragmentation(own, highest.time_ns, device)
    name, total_memory, kind = _device_row(own, device)
    reserved_peak, reserved_peak_ns = _highest_reserved(own, device)
    return DeviceSummary(
        device=device,
        label=device_names(recording).get(device, f"Device {device}"),
        name=name,
        total_memory=total_memory,
        kind=kind,
        allocated_peak=highest.bytes,
        allocated_peak_ns=highest.time_ns,
        reserved_peak=reserved_peak,
        reserved_peak_ns=reserved_peak_ns,
        allocations=stats["allocation.all.allocated"],
        allocated_end=stats["allocated_bytes.all.current"],
        allocations_end=stats["allocation.all.current"],
        reserved_at_peak=at_peak.reserved,
        free_at_peak=at_peak.free,
        largest_free_at_peak=at_peak.largest_free,
        fragmentation_at_peak=at_peak.external,
        out_of_memory=stats["num_ooms"],
        retries=succeeded_on_retry(own, device),
    )


def _device_row(recording: "RecordingData", device: int) -> tuple[str, int, str]:
    for row in recording.tables["devices"].to_pylist():
        if row["id"] == device:
            return row["name"] or "", row["total_memory"] or 0, row["kind"] or ""
    return "", 0, ""


def _highest_reserved(recording: "RecordingData", device: int) -> tuple[int, int]:
    levels = memory_levels(recording)
    reserved = np.where(plain(levels["device"]) == device, plain(levels["reserved"]), -1)
    row = int(reserved.argmax()) if len(reserved) else 0
    if not len(reserved) or reserved[row] < 0:
        return 0, 0
    return int(reserved[row]), levels["time"][row].as_py()


def headline(recording: "Recording", summary: DeviceSummary) -> list[Number]:
    """Return the headline numbers of a device, formatted."""
    return [*_memory(summary), *_pinned(recording), *_activity(recording, summary.device)]


def _memory(summary: DeviceSummary) -> list[Number]:
    failures = "failed allocations" if summary.out_of_memory != 1 else "failed allocation"
    return [
        Number(
            "Peak allocated",
            format_bytes(summary.allocated_peak),
            _when(summary.allocated_peak, summary.allocated_peak_ns),
        ),
        _reserved(summary),
        Number("Allocations", format_count(summary.allocations), "during the recording"),
        Number(
            "Still allocated at the end",
            format_bytes(summary.allocated_end),
            format_counted(summary.allocations_end, "block"),
        ),
        *(_free(summary) if summary.reserved_peak else ()),
        Number("Out of memory", format_count(summary.out_of_memory), failures),
    ]


def _reserved(summary: DeviceSummary) -> Number:
    if summary.allocated_peak and not summary.reserved_peak:
        return Number("Peak reserved", "unknown", "this allocator does not expose its segments")
    return Number(
        "Peak reserved",
        format_bytes(summary.reserved_peak),
        _when(summary.reserved_peak, summary.reserved_peak_ns),
    )


def _free(summary: DeviceSummary) -> tuple[Number, ...]:
    free_share = summary.free_at_peak / max(summary.reserved_at_peak, 1)
    return (
        Number(
            "Free in segments at the peak",
            format_bytes(summary.free_at_peak),
            f"{format_share(free_share)} of the reserved memory",
        ),
        Number(
            "Largest free block at the peak",
            format_bytes(summary.largest_free_at_peak),
            f"{format_count(summary.largest_free_at_peak)} B",
        ),
        Number(
            "Fragmentation at the peak",
            format_share(summary.fragmentation_at_peak),
            "of the free bytes are outside the largest free block",
        ),
    )


def _pinned(recording: "Recording") -> tuple[Number, ...]:
    """Return the peak of pinned memory; nothing if none was recorded."""
    if not recording.host_memory.is_recorded:
        return ()
    pinned = recording.host_memory.peak()
    # Nothing is reserved by a pool of CuPy's, whose segments are not known.
    reserved = (
        f"of {format_bytes(pinned.reserved_bytes)} reserved, " if pinned.reserved_bytes else ""
    )
    when = f"first at {format_duration(pinned.time_ns)}"
    return (Number("Peak of pinned memory", format_bytes(pinned.bytes), f"{reserved}{when}"),)


def _activity(recording: "Recording", device: int) -> "Iterator[Number]":
    """Yield the times of the device and its host; nothing if no activity was recorded."""
    lanes = [each for each in recording.overlap().devices if each.device == device]
    if not lanes:
        return
    (lane,) = lanes
    steady = next(each for each in steady_states(recording) if each.device == device)
    period = "from its first to its last activity" if recording.bounds is None else "shown here"
    yield Number(
        "GPU busy",
        format_share(steady.busy),
        f"{format_duration(steady.busy_ns)} of the {format_duration(steady.duration_ns)} "
        f"{left_out(steady) or period}",
    )
    yield Number(
        "Kernels",
        format_duration(lane.kernel_ns),
        f"at least one kernel ran, {format_share(lane.kernel_ns / max(lane.window_ns, 1))}",
    )
    hidden = f"from or to the host; {format_share(lane.kernel_copy_overlap)} hidden by kernels"
    yield Number("Host copies", format_duration(lane.copy_ns), hidden if lane.copy_ns else "none")
    if lane.device_copy_ns:
        yield Number("Device copies", format_duration(lane.device_copy_ns), "on or between devices")
    if not has_calls(recording):
        yield Number("Host blocked", "unknown", "CUDA calls were not recorded")
        return
    blocked = format_duration(host_blocked_ns(recording, device))
    yield Number("Host blocked", blocked, "in waits and copies, summed over threads")


def host_blocked_ns(recording: "Recording", device: int) -> int:
    """Return for how long the host waited for a device, in ns; waits for none known count too."""
    waits = derived(part_of_device(recording, device))["host_waits"]
    devices = plain(waits["device"])
    return int(durations(waits)[(devices == device) | (devices < 0)].sum())


def has_calls(recording: "Recording") -> bool:
    """Return whether the recording has CUDA calls or waits, which block the host."""
    return any(recording.tables[name].num_rows for name in ("api_calls", "synchronizations"))


def _when(size: int, time_ns: int) -> str:
    return f"{format_count(size)} B, first at {format_duration(time_ns)}"


def live_headline(
    statistics: "RecorderStatistics", device: "DeviceStatistics | None" = None
) -> list[Number]:
    """Return the headline numbers of a recorder, formatted, the elapsed time first.

    Args:
        statistics: The statistics of the recorder.
        device: One of its devices; the first if None.
    """
    device = device or next(iter(statistics.devices), None)
    status = statistics.status
    return [
        Number("Recorded", format_duration(statistics.time_ns), _recorded(statistics)),
        *(() if device is None else _live_memory(device)),
        *_live_work(statistics, device),
        Number("Dropped events", format_count(statistics.dropped), _oldest(status.dropped_oldest)),
        Number(
            "Overhead",
            format_duration(status.own_cost_ns),
            f"{format_share(statistics.own_cost)} of time",
        ),
    ]


def _recorded(statistics: "RecorderStatistics") -> str:
    events = format_counted(statistics.events, "memory event")
    return f"{events}, {format_counted(statistics.activities, 'activity', 'activities')}"


def _live_memory(device: "DeviceStatistics") -> "Iterator[Number]":
    peak = f"peak {format_bytes(device.allocated_peak)}"
    yield Number("Allocated", format_bytes(device.allocated), peak)
    yield Number(
        "Reserved", format_bytes(device.reserved), f"{format_bytes(device.free)} of it free"
    )
    outside = format_bytes(device.free - device.largest_free)
    detail = f"{outside} free outside the largest free block"
    yield Number("Fragmentation", format_share(device.fragmentation), detail)
    if device.allocatable is None or device.unused is None:
        yield Number("Largest free block", format_bytes(device.largest_free), "in segments")
        return
    cached = format_bytes(device.cached_whole)
    detail = f"{format_bytes(device.unused)} unused, {cached} can be released"
    yield Number("Can be allocated now", format_bytes(device.allocatable), detail)


def _live_work(
    statistics: "RecorderStatistics", device: "DeviceStatistics | None"
) -> "Iterator[Number]":
    if not statistics.status.streams:
        yield Number("GPU busy", "unknown", "streams are not recorded")
    elif device is None or device.busy is None or device.lately_busy is None:
        yield Number("GPU busy", "0 %", "nothing ran yet")
    else:
        detail = f"of {format_duration(device.window_ns)}"
        if statistics.status.recording:
            detail += f"; {format_share(device.lately_busy)} in the last second"
        yield Number("GPU busy", format_share(device.busy), detail)
        if device.copy_ns:
            detail = f"of {format_duration(device.copy_ns)} of copies from or to the host"
            yield Number("Copies hidden", format_share(device.hidden_copies), detail)


def _oldest(dropped: int) -> str:
    return f"and the {format_count(dropped)} oldest, to bound memory" if dropped else ""
