"""R15: memory is cached for one stream while another stream's requests need new memory."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.finding import Finding, named
from gpuviz.advice.rule import Rule
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import durations
from gpuviz.analysis.stream_names import stream_names
from gpuviz.analysis.unseen import is_whole
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import ACTIONS
from gpuviz.quantities import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.advice.reserved_memory import ReservedMemory

RULES = (
    Rule(
        "R15",
        "memory cached for another stream",
        "when the peak is reached or a request fails, 10 % of the reserved bytes are free on "
        "streams that do not work at the same time as the request's; on one stream, the peak is at"
        " least 10 % lower; of a device that is mostly empty, a tenth must be reserved, and eight "
        "times what the program ever uses",
        "allocate on one stream, order others with events, or use a few streams in turn",
    ),
)

# Less than these shares of the reserved bytes are not worth another structure of the program.
_LEAST_CACHED = 0.1
_LEAST_SAVED = 0.1
_MOST_NAMES = 4
_CHANGE = (
    "Allocate the arrays on one stream, and order the streams that use them with events "
    "(`wait_event`)."
)
_IN_TURN = (
    " Or use a few streams in turn, such as `streams[i % 2]`, instead of one for each piece of "
    "work: each keeps the memory that its arrays have freed."
)
# Of the shorter busy time of two streams. What works at the same time longer is meant to.
_MOST_SHARED = 0.01


def find(memory: "ReservedMemory") -> "Iterator[Finding]":
    """Find memory that is free, but only for another stream.

    Trigger: when the peak of reserved bytes is reached, or a request fails, at least 10 % of the
    reserved bytes are free on other streams than that of the request; and if all arrays were
    allocated on one stream, the peak would be at least 10 % lower, or no request would fail.
    Streams that work at the same time as that of the request need memory of their own and are not
    counted; nor, without recorded work, those that make further requests. Of a device that is
    mostly empty, a tenth must be reserved and at most an eighth of that ever in use; see
    `ReservedMemory.is_wasted`.
    """
    then = memory.at_moment
    cached = [
        (row["stream"], row["free"])
        for row in then.pools.to_pylist()
        if row["free"] and _is_done(memory, row["stream"])
    ]
    stranded = sum(free for _, free in cached)
    if stranded < _LEAST_CACHED * then.reserved or memory.own is None:
        return
    on_one = memory.replayed(memory.own, "one_stream")
    if not memory.is_relevant(on_one, _LEAST_SAVED):
        return
    line = memory.line
    names = _names(memory, [stream for stream, _ in cached])
    yield Finding(
        rule="R15",
        title=f"{format_bytes(stranded)} is cached for {names} while "
        f"{named(line.site, line.source)} needs new memory: on one stream, "
        f"{memory.effect(on_one)}.",
        reason=(
            f"{format_bytes(then.reserved)} were reserved when "
            f"{format_bytes(memory.requested)} were requested on another stream. The allocator "
            "reuses memory only on the stream that allocated it. The recorded allocations and "
            "frees were repeated on one stream."
        ),
        change=_CHANGE + (_IN_TURN if len(cached) > _MOST_NAMES else ""),
        certainty="possible",
        device=memory.device,
        saved_reserved_bytes=memory.saved(on_one),
        lines=(line,),
        evidence=memory.evidence,
    )


def _is_done(memory: "ReservedMemory", stream: int) -> bool:
    """Return whether the request's stream could use what another stream has cached."""
    if stream == memory.stream or not is_whole(memory.recording.tables):
        return False
    activities = memory.recording.tables["activities"]
    if activities.num_rows:
        begin, streams = plain(activities["time"]), plain(activities["stream"])
        end = begin + durations(activities)
        own, other = streams == memory.stream, streams == stream
        shared = Intervals(begin[other], end[other]).within(begin[own], end[own]).sum()
        busy = min(int((end - begin)[own].sum()), int((end - begin)[other].sum()))
        return bool(shared <= _MOST_SHARED * busy)
    events = memory.recording.tables["memory_events"].slice(memory.moment)
    actions, streams = codes(events["action"], ACTIONS), plain(events["stream"])
    return not np.any((streams == stream) & (actions == ACTIONS.index("alloc")))


def _names(memory: "ReservedMemory", streams: list[int]) -> str:
    known = stream_names(memory.recording)
    names = [f"`{known.get(each) or f'stream {each}'}`" for each in sorted(set(streams))]
    if len(names) > _MOST_NAMES:
        return f"{len(names)} other streams"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
