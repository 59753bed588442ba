"""Requests for memory that failed, and why."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.columns import codes
from gpuviz.analysis.state import initial_state
from gpuviz.out_of_memory.cached_memory import FreeMemory, Layout, Obstacle
from gpuviz.out_of_memory.request import Places, Request
from gpuviz.out_of_memory.verdict import Circumstances, Verdict, foreign, verdict
from gpuviz.recording.tables import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuviz._core import MemoryState
    from gpuviz.recording.recording import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """A request for memory that failed after every retry, and what it met. Sizes are bytes.

    Attributes:
        time_ns: When, from the start of the recording.
        device: Ordinal.
        stream: For which it was, an id of ``streams``.
        pool: In which it was, an id of ``pools``.
        place: Both as a reader knows them.
        thread: That asked, an id of ``threads``.
        stack: That asked, an id of ``stacks``; 0 if none was captured.
        requested: What the program asked for.
        size: The same, rounded to a block.
        segment_size: What the device was asked for.
        allocated: In blocks that the program held.
        allocated_blocks: How many these were.
        active: The same with blocks that waited for other streams.
        reserved: In the allocator's segments.
        pending: In blocks that waited for other streams.
        inactive_split: Free, in segments that are partly used.
        free: Cached memory by pool and stream, most first.
        obstacle: The fewest bytes of live blocks that lie between free ones and keep them from
            being large enough; None where no segment of the request's pool and stream is that
            large.
        device_total: Of the device; 0 where unknown.
        device_free: What the device had left; None where unknown.
        limit: What the allocator may reserve; None where nothing limits it, or it is unknown.
        other_processes: What other processes held, as NVML told; None where it did not.
        outside: What of the device was used and not by the allocator; None where unknown.
        verdict: Why it failed; see `gpuviz.out_of_memory.verdict.verdict`.
        met: The numbers that the verdict rests on.
    """

    time_ns: int
    device: int
    stream: int
    pool: int
    place: str
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
    device_total: int
    device_free: int | None
    limit: int | None
    other_processes: int | None
    outside: int | None
    verdict: Verdict
    met: Circumstances

    @property
    def device_used(self) -> int | None:
        """What of the device was used, by whoever; None where unknown."""
        if self.device_free is None or not self.device_total:
            return None
        return self.device_total - self.device_free

    @property
    def summary(self) -> str:
        """The verdict with its numbers, in one sentence."""
        from gpuviz.out_of_memory.verdict_text import summary

        return summary(self)

    @property
    def explanation(self) -> tuple[str, ...]:
        """Why it failed and what would help, in sentences, the verdict first."""
        from gpuviz.out_of_memory.verdict_text import explanation

        return explanation(self)


def out_of_memory(recording: "Recording") -> tuple[OutOfMemory, ...]:
    """Return the requests that failed, in the order of the recording's events."""
    return _failures_at(recording, failed_rows(recording))


def last_failure(recording: "Recording") -> OutOfMemory:
    """Return the last request that failed; there must be one."""
    return _failures_at(recording, failed_rows(recording)[-1:])[0]


def _failures_at(recording: "Recording", rows: list[int]) -> tuple[OutOfMemory, ...]:
    state = initial_state(recording)
    done = recording.manifest.initial_events
    places, found = Places(recording), []
    for row in rows:
        state.apply(recording.memory_columns, done, row + 1)
        done = row + 1
        found.append(_failure(recording, state, row, places))
    return tuple(found)


def failed_rows(recording: "Recording") -> list[int]:
    """Return the rows of ``memory_events`` that are failed requests, ascending."""
    import numpy as np

    actions = codes(recording.tables["memory_events"]["action"], ACTIONS)
    rows = np.flatnonzero(actions == ACTIONS.index("oom"))
    return [row for row in rows.tolist() if row >= recording.manifest.initial_events]


def _failure(
    recording: "Recording",
    state: "MemoryState",
    row: int,
    places: Places,
) -> OutOfMemory:
    columns = recording.tables["memory_events"]
    event = {name: columns[name][row].as_py() for name in columns.schema.names}
    request, layout = Request(recording, event), Layout(state, event["device"])
    outside = _outside(request, layout)
    met = _met(event, request, layout, outside or 0)
    statistics = state.statistics(event["device"])
    return OutOfMemory(
        time_ns=event["time"],
        requested=event["requested_size"],
        segment_size=met.segment_size,
        place=places.name(event["pool"], event["stream"]),
        **{key: event[key] for key in ("device", "stream", "pool", "thread", "stack", "size")},
        **layout.totals(),
        inactive_split=statistics["inactive_split_bytes.all.current"],
        free=layout.free_memory(places.name),
        obstacle=layout.least_obstacle(event["pool"], event["stream"], event["size"]),
        device_total=request.device_total,
        device_free=request.device_free,
        limit=request.limit,
        other_processes=request.other_processes,
        outside=outside,
        verdict=verdict(met),
        met=met,
    )


def _outside(request: Request, layout: Layout) -> int | None:
    if request.device_free is None or not request.device_total:
        return None
    used = request.device_total - request.device_free
    return max(0, used - layout.reserved - layout.outside_segments)


def _met(
    event: "Mapping[str, Any]",
    request: Request,
    layout: Layout,
    outside: int,
) -> Circumstances:
    return Circumstances(
        size=event["size"],
        segment_size=request.segment_size,
        device_total=request.device_total,
        limit=request.limit,
        limits_are_known=request.limits_are_known,
        splits_are_limited=request.splits_are_limited,
        reserved=layout.reserved,
        room=request.device_free or 0,
        foreign=foreign(outside, request.other_processes),
        **layout.met_by(event["pool"], event["stream"]),
    )
