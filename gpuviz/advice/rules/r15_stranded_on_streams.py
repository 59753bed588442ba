"""R15: memory is cached for one stream while another stream's requests need new memory."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.host_lines import line_numbers, line_of
from gpuviz.advice.reserved.decisive_request import GROWING
from gpuviz.advice.reserved.reserved_memory import Outcome, ReservedMemory
from gpuviz.advice.rule import Rule
from gpuviz.analysis.abandoned_streams import IN_TURN
from gpuviz.analysis.device_replay import Change
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import durations
from gpuviz.analysis.stream_names import stream_names
from gpuviz.analysis.unseen import is_whole
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import ACTIONS
from gpuviz.quantities import format_bytes

RULES = (
    Rule(
        "R15",
        "memory cached for another stream",
        "when the peak is reached or a request fails, 10 % of the reserved bytes are free on "
        "streams that do not work at the same time as the request's; on one stream, the peak is at"
        " least 10 % lower; or the program makes a stream for each of at least eight pieces of "
        "work, one after another; of a device that is mostly empty, a tenth must be reserved, and "
        "eight times what the program ever uses, or a twentieth for such streams",
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
_CHANGE_IN_TURN = (
    f"Make {IN_TURN} streams once and use them in turn, such as `streams[i % {IN_TURN}]`, instead "
    "of one for each piece of work: each keeps the memory that its arrays have freed."
)
_ABANDONED = "After its piece of work, nothing is allocated on a stream. "
# Of the shorter busy time of two streams. What works at the same time longer is meant to.
_MOST_SHARED = 0.01


def find(memory: ReservedMemory) -> Iterator[Finding]:
    """Find memory that is free, but only for another stream.

    Trigger: when the peak of reserved bytes is reached, or a request fails, at least 10 % of the
    reserved bytes are free on other streams than that of the request; and if all arrays were
    allocated on one stream, the peak would be at least 10 % lower, or no request would fail.
    Streams that work at the same time as that of the request need memory of their own and are not
    counted; nor, without recorded work, those that make further requests. Of a device that is
    mostly empty, a tenth must be reserved and at most an eighth of that ever in use; see
    `ReservedMemory.is_wasted`.

    Streams that serve one piece of work each, one after another, need no memory of their own: each
    new one reserves more, and a few in turn keep as much work apart, if none of it is so long that
    later work would wait for it. Then the recorded requests are repeated on these few, and a
    twentieth of a mostly empty device is enough; see `ReservedMemory.grows_with_streams`.
    """
    if memory.own is None:
        return
    change: Change = "streams_in_turn" if len(memory.abandoned_streams) else "one_stream"
    cached = _cached(memory, change)
    stranded = sum(free for _, free in cached)
    if stranded < _LEAST_CACHED * memory.request.memory.reserved:
        return
    outcome = memory.replayed(memory.own, change)
    if memory.is_relevant(outcome, _LEAST_SAVED):
        yield _finding(memory, cached, outcome, change)


def _cached(memory: ReservedMemory, change: Change) -> list[tuple[int, int]]:
    """Return the streams that have free memory which another one could use, and how much."""
    rows = memory.request.memory.pools.to_pylist()
    cached = [(row["stream"], row["free"]) for row in rows if row["free"]]
    if change == "streams_in_turn":
        abandoned = set(memory.abandoned_streams.tolist()) - {memory.request.stream}
        return [(stream, free) for stream, free in cached if stream in abandoned]
    return [(stream, free) for stream, free in cached if _is_done(memory, stream)]


def _finding(
    memory: ReservedMemory, cached: list[tuple[int, int]], outcome: Outcome, change: Change
) -> Finding:
    is_in_turn = change == "streams_in_turn"
    how = f"with {IN_TURN} streams in turn" if is_in_turn else "on one stream"
    by, names = memory.request.line, _names(memory, [stream for stream, _ in cached])
    return Finding(
        rule="R15",
        title=f"{format_bytes(sum(free for _, free in cached))} is cached for {names} while "
        f"{named(by.site, by.source)} needs new memory: {how}, {memory.effect(outcome)}.",
        reason=(
            f"{format_bytes(memory.request.memory.reserved)} were reserved when "
            f"{format_bytes(memory.request.bytes)} were requested on another stream. The allocator "
            "reuses memory only on the stream that allocated it. "
            + (_ABANDONED if is_in_turn else "")
            + f"The recorded allocations and frees were repeated {how}."
        ),
        change=_CHANGE_IN_TURN if is_in_turn else _CHANGE,
        certainty="possible",
        device=memory.device,
        saved_reserved_bytes=memory.saved(outcome),
        lines=(*_allocating(memory, is_in_turn=is_in_turn), by),
        evidence=memory.request.evidence,
    )


def _allocating(memory: ReservedMemory, *, is_in_turn: bool) -> tuple[Line, ...]:
    """Return the line for which abandoned streams reserve most memory; none if before recording."""
    if not is_in_turn:
        return ()
    events = memory.recording.tables["memory_events"]
    is_growing = np.isin(codes(events["action"], ACTIONS), list(map(ACTIONS.index, GROWING)))
    is_growing &= plain(events["stack"]) > 0
    rows = np.flatnonzero(is_growing & np.isin(plain(events["stream"]), memory.abandoned_streams))
    if not len(rows):
        return ()
    stacks, sizes = plain(events["stack"])[rows], plain(events["size"])[rows]
    numbers, first = numbered(line_numbers(memory.recording, stacks))
    sums = np.bincount(numbers, sizes)
    most = int(np.argmax(sums))
    return (line_of(memory.recording, int(stacks[first[most]]), format_bytes(int(sums[most]))),)


def _is_done(memory: ReservedMemory, stream: int) -> bool:
    """Return whether the request's stream could use what another stream has cached."""
    if stream == memory.request.stream or not is_whole(memory.recording.tables):
        return False
    activities = memory.recording.tables["activities"]
    if activities.num_rows:
        begin, streams = plain(activities["time"]), plain(activities["stream"])
        end = begin + durations(activities)
        own, other = streams == memory.request.stream, streams == stream
        shared = Intervals(begin[other], end[other]).within(begin[own], end[own]).sum()
        busy = min(int((end - begin)[own].sum()), int((end - begin)[other].sum()))
        return bool(shared <= _MOST_SHARED * busy)
    events = memory.recording.tables["memory_events"].slice(memory.request.row)
    actions, streams = codes(events["action"], ACTIONS), plain(events["stream"])
    return not np.any((streams == stream) & (actions == ACTIONS.index("alloc")))


def _names(memory: ReservedMemory, streams: list[int]) -> str:
    known = stream_names(memory.recording)
    names = [f"`{known.get(each) or f'stream {each}'}`" for each in sorted(set(streams))]
    if len(names) > _MOST_NAMES:
        return f"{len(names)} other streams"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
