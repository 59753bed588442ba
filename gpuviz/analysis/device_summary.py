"""The main numbers of a device: peaks, what is left at the end, failures."""

from dataclasses import dataclass

import numpy as np

from gpuviz.analysis.fragmentation import fragmentation
from gpuviz.analysis.levels import memory_levels
from gpuviz.analysis.peak import peak
from gpuviz.analysis.processes import device_names, part_of_device
from gpuviz.analysis.retries import succeeded_on_retry
from gpuviz.analysis.statistics import statistics
from gpuviz.data.columns import plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_bytes


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """The numbers of one device, in bytes, nanoseconds and counts.

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


def summarize(recording: RecordingData, device: int) -> DeviceSummary:
    """Return the numbers of one device, which are computed once."""
    known = _summaries(recording)
    if device not in known:
        known[device] = _summary(recording, device)
    return known[device]


@Once
def _summaries(_: RecordingData) -> dict[int, DeviceSummary]:
    return {}


def _summary(recording: RecordingData, device: int) -> DeviceSummary:
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


def _device_row(recording: RecordingData, device: int) -> tuple[str, int, str]:
    for row in recording.tables["devices"].to_pylist():
        if row["id"] == device:
            return row["name"] or "", row["total_memory"] or 0, row["kind"] or ""
    return "", 0, ""


def _highest_reserved(recording: RecordingData, device: int) -> tuple[int, int]:
    levels = memory_levels(recording)
    reserved = np.where(plain(levels["device"]) == device, plain(levels["reserved"]), -1)
    row = int(reserved.argmax()) if len(reserved) else 0
    if not len(reserved) or reserved[row] < 0:
        return 0, 0
    return int(reserved[row]), levels["time"][row].as_py()
