"""A recording's memory under other settings of the allocator, and under other allocators."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.analysis.allocator_settings import ASYNC, CUPY, known_settings
from gpuviz.analysis.device_replay import DeviceReplay, SharedOperations, parsed, total_memory
from gpuviz.analysis.fragmentation import fragmentation
from gpuviz.analysis.peak import peak
from gpuviz.analysis.pools import allocator_beside
from gpuviz.analysis.processes import processes
from gpuviz.analysis.statistics import statistics
from gpuviz.analysis.torch_alone import by_torch_alone
from gpuviz.data.columns import codes, plain
from gpuviz.data.conclusions import schemas
from gpuviz.data.manifest import TORCH_ALLOCATOR
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS
from gpuviz.errors import RecordingError

RECORDED = "recorded"
# The settings of torch that change what a program needs, most often helpful first.
SETTINGS_THAT_MATTER = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:32",
    "max_split_size_mb:128",
    "roundup_power2_divisions:8",
    "expandable_segments:True,roundup_power2_divisions:8",
)
_MIB = 1 << 20
# The driver reserves memory for cudaMallocAsync in these units on an H200, and maps nothing below
# the other.
_ASYNC_UNIT = 32 * _MIB
_PAGE = 2 * _MIB
_LEAST_BLOCK = 512
# What the values of a damaged recording lead to may be larger.
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DriverCalls:
    """Calls of the driver that change reserved memory, with the bytes of segments.

    Pages are those of expandable segments.
    """

    segments_made: int
    bytes_made: int
    segments_released: int
    bytes_released: int
    pages_mapped: int
    pages_unmapped: int

    @classmethod
    def of(cls, outcome: _core.ReplayOutcome) -> "DriverCalls":
        """Return the calls of a replay."""
        return cls(**{each.name: getattr(outcome, each.name) for each in fields(cls)})

    @property
    def estimated_ns(self) -> float:
        """The time of these calls in ns, without waiting for work of the GPU.

        From medians of 20 calls each on an idle H200, of 2 MiB to 4 GiB, and of pages of 2 and
        20 MiB.
        """
        return (
            60_000 * self.segments_made
            + 50 * self.bytes_made / _MIB
            + 45_000 * self.segments_released
            + 620 * self.bytes_released / _MIB
            + 45_000 * self.pages_mapped
            + 38_000 * self.pages_unmapped
        )

    def facts(self) -> dict[str, int]:
        """Return the columns about these calls."""
        calls = self.segments_made + self.segments_released
        calls += self.pages_mapped + self.pages_unmapped
        return {"driver_calls": calls, "driver_ns": round(self.estimated_ns)}


def what_if(
    recording: RecordingData,
    settings: str | Iterable[str] | None = None,
    *,
    capacity: int | None = None,
    device: int | None = None,
) -> pa.Table:
    """Return what the recording's memory would be under other settings of the allocator.

    Raises:
        ValueError: There is no such device, ``capacity`` is less than 1, or a setting has an
            unknown key or a bad value.
        RecordingError: Two allocators were recorded.
        FormatError: The recording lacks the description of a stream.
        DeviceError: The recorded memory exceeds the addresses of the simulated device.
    """
    device = recording.device_or_first(device)
    if processes(recording):
        return _of_process(recording, device, settings, capacity)
    if capacity is not None and capacity < 1:
        raise ValueError(f"capacity must be at least 1 byte, got {capacity}")
    recording = by_torch_alone(recording)
    beside = allocator_beside(recording.tables)
    if beside:
        raise RecordingError(f"{beside} used the GPU too, and only one allocator can be repeated.")
    if settings is None:
        settings = _sweep(recording, is_other_device=capacity is not None)
    asked = (settings,) if isinstance(settings, str) else tuple(settings)
    _check_names(asked)
    rows = [_recorded(recording, device)]
    shared: SharedOperations = {}
    for each in asked:
        if each.strip() == ASYNC:
            rows.append(_async(recording, device, capacity))
        else:
            replay = DeviceReplay(recording, device, each.strip(), capacity, shared=shared)
            rows.append(_replayed(recording, each.strip(), replay))
    for row in rows:
        row |= {name: min(value, _MOST) for name, value in row.items() if isinstance(value, int)}
    schema = schemas()["what_if"]
    return pa.Table.from_pylist(rows, schema.remove(schema.get_field_index("device")))


def _check_names(asked: Iterable[str]) -> None:
    """Check that what is no setting names an allocator."""
    for each in map(str.strip, asked):
        if each and ":" not in each and each not in {CUPY, ASYNC}:
            raise ValueError(
                f"{each!r} is neither {CUPY}, {ASYNC} nor a setting of PyTorch's allocator, such "
                "as max_split_size_mb:128."
            )


def _of_process(
    recording: RecordingData,
    device: int,
    settings: str | Iterable[str] | None,
    capacity: int | None,
) -> pa.Table:
    """Return the memory of the process that used a device, with rows of the merged recording."""
    process = next(each for each in processes(recording) if device in each.devices)
    found = what_if(process.recording, settings, capacity=capacity, device=device)
    events = process.rows["memory_events"]
    failures = [
        None if row is None else int(events[row]) for row in found["first_failure"].to_pylist()
    ]
    place = found.schema.get_field_index("first_failure")
    return found.set_column(place, "first_failure", pa.array(failures, pa.int64()))


def _sweep(recording: RecordingData, *, is_other_device: bool) -> list[str]:
    """Return the settings that matter; the recording's own too if its device is replaced."""
    own = ",".join(known_settings(recording.manifest))
    others = [each for each in SETTINGS_THAT_MATTER if each != own]
    pools = () if recording.manifest.allocator_name == TORCH_ALLOCATOR else (CUPY,)
    return [*([own] if is_other_device else []), *others, *pools, ASYNC]


def _recorded(recording: RecordingData, device: int) -> dict[str, Any]:
    """Return the row of the recording itself."""
    stats = statistics(recording, device)
    at_peak = fragmentation(recording, "peak", device)
    events = recording.tables["memory_events"]
    actions = codes(events["action"], ACTIONS)
    of_device = plain(events["device"]) == device
    failed = np.flatnonzero(of_device & (actions == ACTIONS.index("oom")))
    # Without segments (RMM's logs) nothing is known about reserved memory.
    reserved = stats["reserved_bytes.all.peak"] or None
    return {
        "settings": RECORDED,
        "peak_allocated": peak(recording, device).bytes,
        "peak_reserved": reserved,
        "peak_reserved_lower": reserved,
        "num_alloc_retries": stats["num_alloc_retries"],
        "num_ooms": len(failed),
        "segments": stats["segment.all.peak"] if reserved else None,
        "fragmentation": 1 - at_peak.utilization if reserved else None,
        **(_recorded_calls(recording, device).facts() if reserved else {}),
        **_failure(recording, int(failed[0]) if len(failed) else -1),
    }


def _recorded_calls(recording: RecordingData, device: int) -> DriverCalls:
    events = recording.tables["memory_events"]
    actions = codes(events["action"], ACTIONS)
    sizes, pools = plain(events["size"]), plain(events["pool"])
    there = plain(events["device"]) == device
    there[: recording.manifest.initial_events] = False
    page = np.where(pools % 2 == 1, parsed(recording, None).large_segment_size, _PAGE)
    pages = -(-sizes // page)
    rows = {name: there & (actions == ACTIONS.index(name)) for name in ACTIONS}
    return DriverCalls(
        segments_made=int(np.count_nonzero(rows["segment_alloc"])),
        bytes_made=int(sizes[rows["segment_alloc"]].sum()),
        segments_released=int(np.count_nonzero(rows["segment_free"])),
        bytes_released=int(sizes[rows["segment_free"]].sum()),
        pages_mapped=int(pages[rows["segment_map"]].sum()),
        pages_unmapped=int(pages[rows["segment_unmap"]].sum()),
    )


def _failure(recording: RecordingData, row: int) -> dict[str, Any]:
    times = recording.tables["memory_events"]["time"]
    return {
        "first_failure": row if row >= 0 else None,
        "first_failure_ns": times[row].as_py() if row >= 0 else None,
    }


def _replayed(recording: RecordingData, settings: str, replayed: DeviceReplay) -> dict[str, Any]:
    found = replayed.outcome()
    stats = replayed.allocator.memory_stats()
    reserved = found.reserved_at_peak
    return {
        "settings": settings,
        "peak_allocated": found.peak_allocated,
        "peak_reserved": found.peak_reserved,
        "peak_reserved_lower": found.peak_reserved,
        "num_alloc_retries": stats["num_alloc_retries"],
        "num_ooms": found.failures,
        "segments": stats["segment.all.peak"],
        "fragmentation": 1 - found.active_at_peak / reserved if reserved else 0.0,
        **DriverCalls.of(found).facts(),
        **_failure(recording, found.first_failure),
    }


def _async(recording: RecordingData, device: int, capacity: int | None) -> dict[str, Any]:
    """Return bounds for cudaMallocAsync with a pool that keeps its memory.

    The driver's rules are unknown, and depend on when the GPU has finished. From below: the bytes
    that the program holds, in pages. From above: no memory is used again by another stream, or for
    a request of another power of two.
    """
    initial = recording.manifest.initial_events
    rows = _core.lifetimes(recording.memory_columns, initial, device)
    events = recording.tables["memory_events"]
    allocations = rows["begin"]
    requested = plain(events["requested_size"])[allocations]
    size = np.where(requested > 0, requested, plain(events["size"])[allocations])
    # What begins at a place comes after what ends there.
    places = np.concatenate([rows["end"], np.maximum(allocations, initial - 1)])
    order = np.argsort(places, kind="stable")
    load = int(np.cumsum(np.concatenate([-size, size])[order]).max(initial=0))
    power = np.ceil(np.log2(np.maximum(size, _LEAST_BLOCK))).astype(np.int64)
    _, stream = np.unique(plain(events["stream"])[allocations], return_inverse=True)
    shared = (stream << 6 | power).astype(np.int32)
    block = order % max(len(size), 1)
    together = np.argsort(shared[block], kind="stable")
    order, block = order[together], block[together]
    # All blocks of a class end, at the latest at the end: its sum begins and ends at 0.
    held = np.cumsum(np.where(order < len(size), -1, 1) << power[block])
    first = np.flatnonzero(np.diff(shared[block], prepend=-1))
    upper = int(np.maximum.reduceat(held, first).sum()) if len(first) else 0
    upper = -(-upper // _ASYNC_UNIT) * _ASYNC_UNIT
    lower = -(-load // _PAGE) * _PAGE
    room = total_memory(recording, device) if capacity is None else capacity
    return {
        "settings": ASYNC,
        "peak_allocated": load,
        "peak_reserved": upper,
        "peak_reserved_lower": lower,
        # Between the bounds it is unknown.
        "num_ooms": 0 if not room or upper <= room else None,
    }
