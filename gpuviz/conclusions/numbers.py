"""Wording of the numbers that gpuviz shows of a recording, and of one in progress."""

from collections.abc import Iterator

from gpuviz.advice.replay.compensation import RecordingCost
from gpuviz.analysis.device_summary import DeviceSummary
from gpuviz.analysis.overlap import DeviceOverlap
from gpuviz.analysis.peak import Peak
from gpuviz.conclusions.headline_number import Number
from gpuviz.conclusions.wording import about
from gpuviz.out_of_memory.failures import OutOfMemory
from gpuviz.out_of_memory.verdict_text import beside
from gpuviz.quantities import (
    format_bytes,
    format_count,
    format_counted,
    format_duration,
    format_share,
)
from gpuviz.recorder.status import DeviceStatistics, RecorderStatistics


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


def peak(summary: DeviceSummary, window: tuple[int, int]) -> Number:
    """Return the peak of allocated bytes, of the memory of the device."""
    total = f"of {format_bytes(summary.total_memory)}" if summary.total_memory else ""
    return Number("Peak", format_bytes(summary.allocated_peak), total, window)


def reserved(summary: DeviceSummary, window: tuple[int, int]) -> Number:
    """Return the peak of reserved bytes, and how much was free at the peak."""
    free = f"{format_bytes(summary.free_at_peak)} free"
    return Number("Reserved", format_bytes(summary.reserved_peak), free, window)


def pinned_peak(found: Peak) -> Number:
    """Return the peak of pinned memory."""
    # Nothing is reserved by a pool of CuPy's, whose segments are not known.
    of = f"of {format_bytes(found.reserved_bytes)} reserved, " if found.reserved_bytes else ""
    when = f"first at {format_duration(found.time_ns)}"
    return Number("Peak of pinned memory", format_bytes(found.bytes), f"{of}{when}")


def idle(idle_ns: int, late_ns: int, longest: tuple[int, int] | None) -> Number:
    """Return for how long a GPU had no work.

    Args:
        idle_ns: The time.
        late_ns: How much of it is due to the host.
        longest: The window of the longest part.
    """
    detail = f"{format_duration(late_ns)} due to the host" if late_ns else ""
    return Number("GPU idle", format_duration(idle_ns), detail, longest, "" if longest else "waits")


def kernels(lane: DeviceOverlap) -> Number:
    """Return for how long kernels ran."""
    share = format_share(lane.kernel_ns / max(lane.window_ns, 1))
    return Number("Kernels", format_duration(lane.kernel_ns), f"at least one kernel ran, {share}")


def host_copies(lane: DeviceOverlap) -> Number:
    """Return for how long copies from and to the host ran, and how much of them kernels hide."""
    hidden = f"from or to the host; {format_share(lane.kernel_copy_overlap)} hidden by kernels"
    return Number("Host copies", format_duration(lane.copy_ns), hidden if lane.copy_ns else "none")


def iterations(
    count: int, duration_ns: int, window: tuple[int, int], recorded_ns: int | None = None
) -> Number:
    """Return how often an iteration ran for how long.

    Args:
        count: How often.
        duration_ns: The median duration.
        window: The time of the median iteration.
        recorded_ns: Its duration as recorded, if the other one is as if not recorded.
    """
    recorded = "" if recorded_ns is None else f"recorded {format_duration(recorded_ns)}"
    return Number(
        "Iterations",
        f"{format_count(count)} \u00d7 {format_duration(duration_ns)}",
        f"as if not recorded ({recorded})" if recorded else "",
        window,
    )


def as_if_not_recorded(cost: RecordingCost) -> Number:
    """Return how long the program would have taken without the recording."""
    recorded = f"recorded {format_duration(cost.recorded_ns)}"
    return Number("As if not recorded", about(cost), recorded, tab="environment")


def dropped(count: int) -> Number:
    """Return how many events were not recorded."""
    return Number("Dropped", format_count(count), tab="environment")


def memory(summary: DeviceSummary) -> list[Number]:
    """Return the numbers of a device's memory."""
    return [
        peak_allocated(
            summary.allocated_peak, _when(summary.allocated_peak, summary.allocated_peak_ns)
        ),
        _peak_reserved(summary),
        allocations(summary.allocations, "during the recording"),
        still_allocated(summary.allocated_end, format_counted(summary.allocations_end, "block")),
        *(_free(summary) if summary.reserved_peak else ()),
        failed_allocations(summary.out_of_memory),
    ]


def _peak_reserved(summary: DeviceSummary) -> Number:
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


def _when(size: int, time_ns: int) -> str:
    return f"{format_count(size)} B, first at {format_duration(time_ns)}"


def recorded(statistics: RecorderStatistics) -> Number:
    """Return for how long a recorder has recorded, and how much."""
    events = format_counted(statistics.events, "memory event")
    detail = f"{events}, {format_counted(statistics.activities, 'activity', 'activities')}"
    return Number("Recorded", format_duration(statistics.time_ns), detail)


def live_memory(device: DeviceStatistics) -> Iterator[Number]:
    """Yield the numbers of a device's memory while it is recorded."""
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


def live_work(statistics: RecorderStatistics, device: DeviceStatistics | None) -> Iterator[Number]:
    """Yield the numbers of a device's work while it is recorded."""
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


def dropped_events(statistics: RecorderStatistics) -> Number:
    """Return how many events a recorder did not record."""
    oldest = statistics.status.dropped_oldest
    detail = f"and the {format_count(oldest)} oldest, to bound memory" if oldest else ""
    return Number("Dropped events", format_count(statistics.dropped), detail)


def overhead(statistics: RecorderStatistics) -> Number:
    """Return what recording has cost so far."""
    cost = f"{format_share(statistics.own_cost)} of time"
    return Number("Overhead", format_duration(statistics.status.own_cost_ns), cost)


def failure_numbers(failed: OutOfMemory) -> list[Number]:
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


def _beside(failed: OutOfMemory) -> list[Number]:
    """Return what another recorded allocator of the process holds; nothing without one."""
    if not failed.beside:
        return []
    cached = f"{format_bytes(failed.cached_beside)} in segments that it does not use"
    return [Number(f"Held by {beside(failed)}", format_bytes(failed.beside), cached)]


def _known(size: int | None) -> str:
    return "unknown" if size is None else format_bytes(size)


def _others(failed: OutOfMemory) -> str:
    if failed.other_processes is None:
        return "other processes, libraries, the CUDA context"
    return f"{format_bytes(failed.other_processes)} by other processes"
