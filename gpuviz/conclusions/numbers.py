"""The numbers that gpuviz shows of a recording, and of one in progress, each worded here."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.device_summary import DeviceSummary, summarize
from gpuviz.analysis.host_memory import host_memory
from gpuviz.analysis.iterations import median_iteration
from gpuviz.analysis.launches import durations
from gpuviz.analysis.overlap import whole_overlap
from gpuviz.analysis.processes import part_of_device
from gpuviz.conclusions.facts import around
from gpuviz.conclusions.store import known_iterations
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

    from gpuviz.analysis.overlap import DeviceOverlap
    from gpuviz.data.recording_data import RecordingData
    from gpuviz.recorder.status import DeviceStatistics, RecorderStatistics


@dataclass(frozen=True, slots=True)
class Number:
    """A headline number: name, value and explanation, and where a page shows more.

    Attributes:
        name: What it is.
        value: Its value with the unit.
        detail: What it refers to.
        window: The time to show, in ns.
        tab: The table to show.
    """

    name: str
    value: str
    detail: str = ""
    window: tuple[int, int] | None = None
    tab: str = ""


def figures(recording: "RecordingData", device: int) -> "Iterator[Number]":
    """Yield the few numbers at the head of a page, which lead to what they are about."""
    if recording.tables["memory_events"].num_rows:
        yield from _memory_figures(recording, summarize(recording, device))
    yield from _time_figures(recording, device)
    iterations = known_iterations(recording, device)
    if iterations.num_rows:
        middle = median_iteration(iterations)
        each = f"\u00d7 {format_duration(middle['duration_ns'])}"
        yield Number(
            "Iterations",
            format_count(iterations.num_rows),
            each,
            (middle["start"], middle["end"]),
        )
    yield Number("Dropped", format_count(recording.dropped), tab="environment")


def _memory_figures(recording: "RecordingData", summary: DeviceSummary) -> "Iterator[Number]":
    total = f"of {format_bytes(summary.total_memory)}" if summary.total_memory else ""
    at_peak = around(recording, summary.allocated_peak_ns)
    yield Number("Peak", format_bytes(summary.allocated_peak), total, at_peak)
    if summary.reserved_peak:
        free = f"{format_bytes(summary.free_at_peak)} free"
        highest = around(recording, summary.reserved_peak_ns)
        yield Number("Reserved", format_bytes(summary.reserved_peak), free, highest)
    if summary.out_of_memory:
        yield Number("Out of memory", format_count(summary.out_of_memory), tab="findings")


def _time_figures(recording: "RecordingData", device: int) -> "Iterator[Number]":
    for lane in _lanes(recording, device):
        yield Number("GPU busy", format_share(lane.busy), tab="kernels")
        late = lane.idle_host_ns + lane.idle_synchronization_ns + lane.idle_allocation_ns
        detail = f"{format_duration(late)} due to the host" if late else ""
        longest = _longest_gap(recording, device)
        tab = "" if longest else "waits"
        yield Number("GPU idle", format_duration(lane.idle_ns), detail, longest, tab)
        if lane.copy_ns:
            yield Number("Copies hidden", format_share(lane.kernel_copy_overlap), tab="copies")
        if has_calls(recording):
            blocked = format_duration(host_blocked_ns(recording, device))
            yield Number("Host blocked", blocked, tab="waits")


def _lanes(recording: "RecordingData", device: int) -> "list[DeviceOverlap]":
    return [each for each in whole_overlap(recording).devices if each.device == device]


def _longest_gap(recording: "RecordingData", device: int) -> tuple[int, int] | None:
    """Return the window of the longest idle time of a device with one cause; None without one."""
    gaps = derived(recording)["idle_gaps"]
    is_ours = (plain(gaps["device"]) == device) & (plain(gaps["stream"]) == 0)
    starts, ends = plain(gaps["time"])[is_ours], plain(gaps["end"])[is_ours]
    if not len(starts):
        return None
    row = int((ends - starts).argmax())
    return int(starts[row]), int(ends[row])


def headline(recording: "RecordingData", summary: DeviceSummary) -> list[Number]:
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


def _pinned(recording: "RecordingData") -> tuple[Number, ...]:
    """Return the peak of pinned memory; nothing if none was recorded."""
    pinned = host_memory(recording)
    if not pinned.is_recorded:
        return ()
    peak = pinned.peak()
    reserved = f"of {format_bytes(peak.reserved_bytes)} reserved"
    when = f"first at {format_duration(peak.time_ns)}"
    return (Number("Peak of pinned memory", format_bytes(peak.bytes), f"{reserved}, {when}"),)


def _activity(recording: "RecordingData", device: int) -> "Iterator[Number]":
    """Yield the times of the device and its host; nothing if no activity was recorded."""
    lanes = _lanes(recording, device)
    if not lanes:
        return
    (lane,) = lanes
    period = "from its first to its last activity" if recording.bounds is None else "shown here"
    yield Number(
        "GPU busy",
        format_share(lane.busy),
        f"{format_duration(lane.busy_ns)} of the {format_duration(lane.window_ns)} {period}",
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


def host_blocked_ns(recording: "RecordingData", device: int) -> int:
    """Return for how long the host waited for a device, in ns; waits for none known count too."""
    waits = derived(part_of_device(recording, device))["host_waits"]
    devices = plain(waits["device"])
    return int(durations(waits)[(devices == device) | (devices < 0)].sum())


def has_calls(recording: "RecordingData") -> bool:
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
