"""The numbers that gpuviz shows of a recording, and of one in progress, each worded here."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuviz.advice.compensation import compensated, recording_cost
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.device_summary import DeviceSummary, summarize
from gpuviz.analysis.host_memory import host_memory
from gpuviz.analysis.iterations import median_iteration
from gpuviz.analysis.launches import durations
from gpuviz.analysis.overlap import whole_overlap
from gpuviz.analysis.processes import part_of_device
from gpuviz.analysis.steady_state import steady_of
from gpuviz.conclusions.facts import around
from gpuviz.conclusions.store import known_iterations
from gpuviz.conclusions.wording import about, left_out
from gpuviz.data.columns import plain
from gpuviz.out_of_memory.verdict_text import beside
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
    from gpuviz.out_of_memory.failures import OutOfMemory
    from gpuviz.recorder.status import DeviceStatistics, RecorderStatistics


DEFINITIONS = {
    "Peak": "The most bytes allocated at once, as rounded by the allocator",
    "Reserved": "The most bytes that the allocator held from CUDA at once, and how many of them no "
    "block used at the peak",
    "GPU busy": "Share of the time in which at least one kernel, copy, memset or graph ran",
    "GPU idle": "Time between activities in which nothing ran on the GPU",
    "Copies hidden": "Share of the time of copies from or to the host in which a kernel ran, too",
    "Host blocked": "Time in which a call made the host wait for the GPU",
    "Iterations": "How often the program repeats itself, and the median duration",
    "Out of memory": "Allocations that failed",
    "Dropped": "Events that were not recorded because a buffer was full",
}


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

    @property
    def definition(self) -> str:
        """What it counts; empty if its name says that."""
        return DEFINITIONS.get(self.name, "")

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.value, self.detail)))


def busy(share: float, detail: str = "", tab: str = "") -> Number:
    """Return for how much of the time a GPU had work."""
    return Number("GPU busy", format_share(share), detail, tab=tab)


def hidden_copies(share: float, copy_ns: int | None, tab: str = "") -> Number:
    """Return how much of the copies from and to the host kernels hide."""
    detail = f"of {format_duration(copy_ns)} of copies from or to the host" if copy_ns else ""
    return Number("Copies hidden", format_share(share), detail, tab=tab)


def device_copies(copy_ns: int) -> Number:
    """Return how long copies on and between devices took."""
    return Number("Device copies", format_duration(copy_ns), "on or between devices")


def blocked(blocked_ns: int, detail: str = "", tab: str = "") -> Number:
    """Return for how long the host waited."""
    return Number("Host blocked", format_duration(blocked_ns), detail, tab=tab)


def peak_allocated(size: int, detail: str) -> Number:
    """Return the peak of allocated bytes."""
    return Number("Peak allocated", format_bytes(size), detail)


def still_allocated(size: int, detail: str) -> Number:
    """Return how many bytes are allocated at the end."""
    return Number("Still allocated", format_bytes(size), detail)


def allocations(count: int, detail: str) -> Number:
    """Return the number of allocations."""
    return Number("Allocations", format_count(count), detail)


def failed_allocations(count: int, tab: str = "") -> Number:
    """Return the number of failed allocations."""
    failed = "failed allocation" if count == 1 else "failed allocations"
    return Number("Out of memory", format_count(count), "" if tab else failed, tab=tab)


def not_recorded(name: str, reason: str) -> Number:
    """Return a number that is unknown."""
    return Number(name, "unknown", reason)


def hazards(count: int) -> Number:
    """Return the number of hazards."""
    text = "unordered operations on the same memory"
    return Number("Hazards", format_count(count), text if count else f"no {text}")


def default_stream_work(count: int) -> Number:
    """Return how much ran on the legacy default stream."""
    return Number("Default stream", format_count(count), "launches, copies and memsets")


def figures(recording: "RecordingData", device: int) -> "Iterator[Number]":
    """Yield the few numbers at the head of a page, which lead to what they are about."""
    if recording.tables["memory_events"].num_rows:
        yield from _memory_figures(recording, summarize(recording, device))
    yield from _time_figures(recording, device)
    iterations = known_iterations(recording, device)
    if iterations.num_rows:
        middle = median_iteration(iterations)
        yield Number(
            "Iterations",
            *_iterations(recording, device, iterations.num_rows, middle["duration_ns"]),
            (middle["start"], middle["end"]),
        )
    elif (cost := recording_cost(recording)) is not None:
        recorded = f"recorded {format_duration(cost.recorded_ns)}"
        yield Number("As if not recorded", about(cost), recorded, tab="environment")
    yield Number("Dropped", format_count(recording.dropped), tab="environment")


def _iterations(
    recording: "RecordingData", device: int, count: int, recorded_ns: int
) -> tuple[str, str]:
    """Return how often an iteration ran for how long, and whether that is as if not recorded."""
    recorded = format_duration(recorded_ns)
    unrecorded = compensated(recording)
    iterations = known_iterations(unrecorded, device)
    if unrecorded is recording or not iterations.num_rows:
        return f"{format_count(count)} \u00d7 {recorded}", ""
    middle = format_duration(median_iteration(iterations)["duration_ns"])
    return f"{format_count(count)} \u00d7 {middle}", f"as if not recorded (recorded {recorded})"


def _memory_figures(recording: "RecordingData", summary: DeviceSummary) -> "Iterator[Number]":
    total = f"of {format_bytes(summary.total_memory)}" if summary.total_memory else ""
    at_peak = around(recording, summary.allocated_peak_ns)
    yield Number("Peak", format_bytes(summary.allocated_peak), total, at_peak)
    if summary.reserved_peak:
        free = f"{format_bytes(summary.free_at_peak)} free"
        highest = around(recording, summary.reserved_peak_ns)
        yield Number("Reserved", format_bytes(summary.reserved_peak), free, highest)
    if summary.out_of_memory:
        yield failed_allocations(summary.out_of_memory, "findings")


def _time_figures(recording: "RecordingData", device: int) -> "Iterator[Number]":
    unrecorded = compensated(recording)
    for lane in _lanes(unrecorded, device):
        steady = steady_of(unrecorded, device)
        yield busy(steady.busy, left_out(steady), tab="kernels")
        late = sum(steady.causes_ns[cause] for cause in ("host", "synchronization", "allocation"))
        detail = f"{format_duration(late)} due to the host" if late else ""
        longest = _longest_gap(recording, device)
        tab = "" if longest else "waits"
        yield Number("GPU idle", format_duration(steady.idle_ns), detail, longest, tab)
        if lane.copy_ns:
            yield hidden_copies(lane.kernel_copy_overlap, None, "copies")
        if has_calls(recording):
            yield blocked(host_blocked_ns(unrecorded, device), tab="waits")


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
    return [
        peak_allocated(
            summary.allocated_peak, _when(summary.allocated_peak, summary.allocated_peak_ns)
        ),
        _reserved(summary),
        allocations(summary.allocations, "during the recording"),
        still_allocated(summary.allocated_end, format_counted(summary.allocations_end, "block")),
        *(_free(summary) if summary.reserved_peak else ()),
        failed_allocations(summary.out_of_memory),
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
    # Nothing is reserved by a pool of CuPy's, whose segments are not known.
    reserved = f"of {format_bytes(peak.reserved_bytes)} reserved, " if peak.reserved_bytes else ""
    when = f"first at {format_duration(peak.time_ns)}"
    return (Number("Peak of pinned memory", format_bytes(peak.bytes), f"{reserved}{when}"),)


def _activity(recording: "RecordingData", device: int) -> "Iterator[Number]":
    """Yield the times of the device and its host; nothing if no activity was recorded."""
    unrecorded = compensated(recording)
    lanes = _lanes(unrecorded, device)
    if not lanes:
        return
    (lane,) = lanes
    period = "from its first to its last activity" if recording.bounds is None else "shown here"
    if unrecorded is not recording:
        period = f"{period}, as if not recorded"
    steady = steady_of(unrecorded, device)
    yield busy(
        steady.busy,
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
        yield device_copies(lane.device_copy_ns)
    if not has_calls(recording):
        yield not_recorded("Host blocked", "CUDA calls were not recorded")
        return
    yield blocked(host_blocked_ns(unrecorded, device), "in waits and copies, summed over threads")


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
    statistics: "RecorderStatistics",
    device: "DeviceStatistics | None" = None,
    finished: "RecordingData | None" = None,
) -> list[Number]:
    """Return the headline numbers of a recorder, formatted, the elapsed time first.

    Args:
        statistics: The statistics of the recorder.
        device: One of its devices; the first if None.
        finished: The recording at its end: times are then those of its report, of the steady state
            and without what recording cost.
    """
    device = device or next(iter(statistics.devices), None)
    status = statistics.status
    times: list[Number] = []
    if finished is not None and device is not None:
        times = list(_time_figures(finished, device.device))
    cost = f"{format_share(statistics.own_cost)} of time"
    overhead = Number("Overhead", format_duration(status.own_cost_ns), cost)
    return [
        Number("Recorded", format_duration(statistics.time_ns), _recorded(statistics)),
        *(() if device is None else _live_memory(device)),
        *(times or _live_work(statistics, device)),
        Number("Dropped events", format_count(statistics.dropped), _oldest(status.dropped_oldest)),
        *(() if times else (overhead,)),
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
        yield not_recorded("GPU busy", "streams are not recorded")
    elif device is None or device.busy is None:
        yield busy(0, "nothing ran yet")
    else:
        detail = f"of {format_duration(device.window_ns)}"
        if statistics.status.recording and device.lately_busy is None:
            detail += "; not recorded in all of the last second"
        elif statistics.status.recording and device.lately_busy is not None:
            detail += f"; {format_share(device.lately_busy)} in the last second"
        yield busy(device.busy, detail)
        if device.copy_ns:
            yield hidden_copies(device.hidden_copies, device.copy_ns)


def _oldest(dropped: int) -> str:
    return f"and the {format_count(dropped)} oldest, to bound memory" if dropped else ""


def failure_numbers(failed: "OutOfMemory") -> list[Number]:
    """Return the numbers of a failed request."""
    request = failed.request
    blocks = format_counted(failed.allocated_blocks, "block")
    largest = max((each.largest for each in failed.free), default=0)
    limit = "no limit" if failed.limit is None else f"limited to {format_bytes(failed.limit)}"
    total = f"of {format_bytes(failed.device_total)}" if failed.device_total else "total unknown"
    return [
        Number("Requested", format_bytes(failed.requested), f"{format_count(failed.requested)} B"),
        Number("Allocated", format_bytes(failed.allocated), blocks),
        Number(
            "Free in segments",
            format_bytes(request.cached),
            f"largest block {format_bytes(largest)}",
        ),
        Number(
            "Waiting for other streams", format_bytes(failed.pending), "freed, not yet reusable"
        ),
        Number("Reserved", format_bytes(failed.reserved), limit),
        Number("Free on the device", _known(failed.device_free), total),
        *_beside(failed),
        Number("Used outside this allocator", _known(failed.other_memory), _others(failed)),
        Number(
            "Requested from the device",
            format_bytes(failed.segment_size),
            "the new segment",
        ),
    ]


def _beside(failed: "OutOfMemory") -> list[Number]:
    """Return what another recorded allocator of the process holds; nothing without one."""
    if not failed.beside:
        return []
    cached = f"{format_bytes(failed.cached_beside)} in segments that it does not use"
    return [Number(f"Held by {beside(failed)}", format_bytes(failed.beside), cached)]


def _known(size: int | None) -> str:
    return "unknown" if size is None else format_bytes(size)


def _others(failed: "OutOfMemory") -> str:
    if failed.other_processes is None:
        return "other processes, libraries, the CUDA context"
    return f"{format_bytes(failed.other_processes)} by other processes"
