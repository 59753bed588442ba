"""Failed requests for memory in a recording, each with its verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.analysis.initial_state import initial_state
from gpuviz.analysis.pools import TORCH_OWNER, WITHOUT_SEGMENTS
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS
from gpuviz.out_of_memory.cached_memory import FreeMemory, Layout, Obstacle
from gpuviz.out_of_memory.moment import Moment
from gpuviz.out_of_memory.request import PoolNames, RequestDetails
from gpuviz.out_of_memory.stream_handles import StreamHandles
from gpuviz.out_of_memory.verdict import (
    FailedRequest,
    Verdict,
    reclaimable_other_memory,
    verdict,
)
from gpuviz.out_of_memory.verdict_text import explanation, summary

if TYPE_CHECKING:
    from gpuviz._core import MemoryState


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """A request for memory that failed after every retry, and the state at that time, in bytes.

    Attributes:
        time_ns: Time since the start of the recording.
        device: Ordinal.
        stream: Id of the stream in ``streams``.
        pool: Id of the pool in ``pools``.
        pool_and_stream: Their names.
        thread: Id of the requesting thread in ``threads``.
        stack: Id of its call stack in ``stacks``; 0 if none was captured.
        requested: Bytes that the program requested.
        size: The same, rounded to a block.
        segment_size: Bytes requested from the device.
        allocated: Bytes in the program's live blocks.
        allocated_blocks: Number of these blocks.
        active: The same with blocks that waited for other streams.
        reserved: Bytes in the allocator's segments.
        pending: Bytes in blocks that waited for other streams.
        inactive_split: Free bytes in segments that are partly in use.
        free: Cached memory by pool and stream, largest first.
        obstacle: The live blocks with the fewest bytes that separate enough free memory for the
            request; None if no segment of its pool and stream is large enough.
        pins: Live blocks with few bytes that keep the allocator from releasing enough segments for
            the request; None without such blocks.
        device_total: Total memory of the device; 0 if unknown.
        device_free: Free memory of the device; None if unknown.
        limit: What the allocator may reserve; None if nothing limits it, or if unknown.
        other_processes: Memory of other processes, from NVML; None if unknown.
        of_torch: Whether torch's own allocator failed, in a recording of another one beside it.
        beside: Bytes in the segments of the other recorded allocator of this process.
        cached_beside: Bytes of them in segments that it does not use, and could release.
        other_memory: Memory of the device in use outside these allocators; None if unknown.
        verdict: Why it failed; see `gpuviz.out_of_memory.verdict.verdict`.
        request: The numbers behind the verdict.
        moment: The failure's place in its recording.
    """

    time_ns: int
    device: int
    stream: int
    pool: int
    pool_and_stream: str
    thread: int
    stack: int
    requested: int
    size: int
    segment_size: int
    allocated: int
    allocated_blocks: int
    active: int
    reserved: int
    pending: int
    inactive_split: int
    free: tuple[FreeMemory, ...]
    obstacle: Obstacle | None
    pins: Obstacle | None
    device_total: int
    device_free: int | None
    limit: int | None
    other_processes: int | None
    of_torch: bool
    beside: int
    cached_beside: int
    other_memory: int | None
    verdict: Verdict
    request: FailedRequest
    moment: Moment = field(repr=False, compare=False)

    @property
    def summary(self) -> str:
        """The verdict and its reason, in one sentence."""
        return summary(self)

    @property
    def explanation(self) -> tuple[str, ...]:
        """Why it failed and what would help, in sentences; the verdict comes first.

        Remedies are checked by replaying the recording until the failure.
        """
        return explanation(self)


def out_of_memory(recording: RecordingData) -> tuple[OutOfMemory, ...]:
    """Return the requests that failed, in the order of the recording's events."""
    return _failures_at(recording, failed_rows(recording))


def last_failure(recording: RecordingData) -> OutOfMemory:
    """Return the last request that failed; there must be one."""
    return _failures_at(recording, failed_rows(recording)[-1:])[0]


def first_failure(recording: RecordingData, device: int) -> OutOfMemory | None:
    """Return the first request that failed on a device, if there is a verdict on any."""
    devices = plain(recording.tables["memory_events"]["device"])
    rows = [row for row in failed_rows(recording) if devices[row] == device]
    return next(iter(_failures_at(recording, rows[:1])), None)


def _failures_at(recording: RecordingData, rows: list[int]) -> tuple[OutOfMemory, ...]:
    state = initial_state(recording)
    done = recording.manifest.initial_events
    names, found = PoolNames(recording), []
    for row in rows:
        state.apply(recording.memory_columns, done, row + 1)
        done = row + 1
        found.append(_failure(recording, state, row, names))
    return tuple(found)


def failed_rows(recording: RecordingData) -> list[int]:
    """Return the rows of ``memory_events`` that are failed requests, ascending.

    Those of allocators whose segments are not recorded are left out: there is no verdict on them.
    """
    events = recording.tables["memory_events"]
    failed = codes(events["action"], ACTIONS) == ACTIONS.index("oom")
    rows = np.flatnonzero(failed & ~np.isin(plain(events["pool"]) // 2, WITHOUT_SEGMENTS))
    return [row for row in rows.tolist() if row >= recording.manifest.initial_events]


def _failure(
    recording: RecordingData,
    state: "MemoryState",
    row: int,
    names: PoolNames,
) -> OutOfMemory:
    columns = recording.tables["memory_events"]
    event = {name: columns[name][row].as_py() for name in columns.schema.names}
    details = RequestDetails(recording, event)
    of_torch = event["pool"] // 2 >= TORCH_OWNER
    handles = StreamHandles(recording, event["stream"], event["time"])
    layout = Layout(state, event["device"], handles, of_torch=of_torch)
    beside = Layout(state, event["device"], handles, of_torch=not of_torch)
    other_memory = _other_memory(details, layout, beside)
    request = _request(event, details, layout, beside, other_memory or 0)
    return OutOfMemory(
        time_ns=event["time"],
        requested=event["requested_size"],
        segment_size=request.segment_size,
        pool_and_stream=names.name(event["pool"], event["stream"]),
        **{key: event[key] for key in ("device", "stream", "pool", "thread", "stack", "size")},
        **layout.totals(),
        inactive_split=layout.inactive_split,
        free=layout.free_memory(names.name),
        obstacle=layout.least_obstacle(event["pool"], event["stream"], event["size"]),
        pins=layout.least_pins(
            (request.mapped_size or request.segment_size) - request.room - request.idle_segments
        ),
        device_total=details.device_total,
        device_free=details.device_free,
        limit=details.limit,
        other_processes=details.other_processes,
        of_torch=of_torch,
        beside=beside.reserved + beside.outside_segments,
        cached_beside=beside.idle_segments,
        other_memory=other_memory,
        verdict=verdict(request),
        request=request,
        moment=Moment(recording, row),
    )


def _other_memory(details: RequestDetails, *layouts: Layout) -> int | None:
    if details.device_free is None or not details.device_total:
        return None
    used = details.device_total - details.device_free
    return max(0, used - sum(each.reserved + each.outside_segments for each in layouts))


def _request(
    event: Mapping[str, Any],
    details: RequestDetails,
    layout: Layout,
    beside: Layout,
    other_memory: int,
) -> FailedRequest:
    return FailedRequest(
        size=event["size"],
        requested=event["requested_size"],
        segment_size=details.segment_size,
        mapped_size=details.mapped_size,
        device_total=details.device_total,
        limit=details.limit,
        limits_are_known=details.limits_are_known,
        splits_are_limited=details.splits_are_limited,
        reserved=layout.reserved,
        room=details.device_free or 0,
        room_is_known=details.device_free is not None,
        cached_beside=beside.idle_segments,
        reclaimable_other_memory=reclaimable_other_memory(other_memory, details.other_processes),
        **layout.available_to(event["pool"], event["stream"]),
    )
