"""The numbers and findings at the head of a report."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuviz.analysis.columns import plain
from gpuviz.quantities import format_bytes, format_count, format_duration, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.recording.recording import Recording


@dataclass(frozen=True, slots=True)
class Number:
    """A headline number: what it is, its value, and what helps to read it."""

    name: str
    value: str
    detail: str


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """What a report says about one device in bytes, nanoseconds and counts.

    Attributes:
        device: Ordinal.
        name: The device's name; empty where unknown.
        total_memory: Bytes of the device; 0 where unknown.
        kind: ``cuda``, ``simulated`` or ``recorded``; empty where unknown.
        allocated_peak: The most bytes allocated at one time.
        allocated_peak_ns: When that was first so.
        reserved_peak: The most bytes reserved at one time.
        reserved_peak_ns: When that was first so.
        allocations: Allocations during the recording.
        allocated_end: Bytes allocated at the end.
        allocations_end: Blocks allocated at the end.
        reserved_at_peak: Bytes reserved when most bytes were allocated.
        free_at_peak: Bytes of free blocks in segments then.
        largest_free_at_peak: Bytes of the largest of them.
        fragmentation_at_peak: Share of the free bytes outside the largest of them.
        out_of_memory: Allocations that failed.
        retries: Allocations that succeeded only after the cache was emptied.
    """

    device: int
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
        """The device as a reader knows it: ``Device 0: NVIDIA H100, 80.0 GiB``."""
        memory = format_bytes(self.total_memory) if self.total_memory else ""
        parts = ", ".join(part for part in (self.name, memory) if part)
        return f"Device {self.device}: {parts}" if parts else f"Device {self.device}"


def summarize(recording: "Recording", device: int) -> DeviceSummary:
    """Return the numbers of one device, all of them asked of the recording."""
    stats = recording.memory_stats(device)
    peak = recording.peak(device)
    at_peak = recording.fragmentation(peak.time_ns, device)
    name, total_memory, kind = _device_row(recording, device)
    reserved_peak, reserved_peak_ns = _highest_reserved(recording, device)
    return DeviceSummary(
        device=device,
        name=name,
        total_memory=total_memory,
        kind=kind,
        allocated_peak=peak.bytes,
        allocated_peak_ns=peak.time_ns,
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
        retries=stats["num_alloc_retries"],
    )


def _device_row(recording: "Recording", device: int) -> tuple[str, int, str]:
    for row in recording.table("devices").to_pylist():
        if row["id"] == device:
            return row["name"] or "", row["total_memory"] or 0, row["kind"] or ""
    return "", 0, ""


def _highest_reserved(recording: "Recording", device: int) -> tuple[int, int]:
    import numpy as np

    levels = recording.table("memory_levels")
    reserved = np.where(plain(levels["device"]) == device, plain(levels["reserved"]), -1)
    row = int(reserved.argmax()) if len(reserved) else 0
    if not len(reserved) or reserved[row] < 0:
        return 0, 0
    return int(reserved[row]), levels["time"][row].as_py()


def headline(recording: "Recording", summary: DeviceSummary) -> list[Number]:
    """Return the headline numbers of a device, ready to print."""
    return [*_memory(summary), *_work(recording, summary.device)]


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
            _counted(summary.allocations_end, "block"),
        ),
        *(_free(summary) if summary.reserved_peak else ()),
        Number("Out of memory", format_count(summary.out_of_memory), failures),
    ]


def _reserved(summary: DeviceSummary) -> Number:
    if summary.allocated_peak and not summary.reserved_peak:
        return Number("Peak reserved", "unknown", "this allocator does not tell its segments")
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
            f"{format_share(free_share)} of what was reserved then",
        ),
        Number(
            "Largest free block at the peak",
            format_bytes(summary.largest_free_at_peak),
            f"{format_count(summary.largest_free_at_peak)} B",
        ),
        Number(
            "Fragmentation at the peak",
            format_share(summary.fragmentation_at_peak),
            "of the free bytes lie outside the largest free block",
        ),
    )


def _work(recording: "Recording", device: int) -> "Iterator[Number]":
    """Yield what the device and its host did; nothing if no activity was recorded."""
    lanes = [each for each in recording.overlap().devices if each.device == device]
    if not lanes:
        return
    (lane,) = lanes
    yield Number(
        "GPU busy",
        format_share(lane.busy),
        f"{format_duration(lane.busy_ns)} of the {format_duration(lane.window_ns)} from its first "
        "to its last activity",
    )
    yield Number(
        "Kernels",
        format_duration(lane.kernel_ns),
        f"at least one ran, {format_share(lane.kernel_ns / max(lane.window_ns, 1))} of that time",
    )
    hidden = f"{format_share(lane.kernel_copy_overlap)} of it behind kernels"
    yield Number("Copies", format_duration(lane.copy_ns), hidden if lane.copy_ns else "none")
    blocked = sum(recording.synchronizations()["total_ns"].to_pylist())
    yield Number("Host blocked", format_duration(blocked), "all threads, in waits and copies")


def _when(size: int, time_ns: int) -> str:
    return f"{format_count(size)} B, first at {format_duration(time_ns)}"


def _counted(count: int, noun: str) -> str:
    return f"{format_count(count)} {noun}{'' if count == 1 else 's'}"
