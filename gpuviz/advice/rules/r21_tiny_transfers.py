"""R21: many small copies in a row, which one copy could replace."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz.advice.finding import Evidence, Finding
from gpuviz.advice.host_gaps import LONG_NS, host_gaps
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.schedule import Schedule, ScheduleChange
from gpuviz.advice.trace import COPY
from gpuviz.analysis.columns import codes, plain
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_bytes, format_count, format_duration
from gpuviz.recording.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.recording.recording import Recording

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_DIRECTIONS = {
    _COPY_KINDS.index("host_to_device"): "to the GPU",
    _COPY_KINDS.index("device_to_host"): "to the host",
}
# A copy of this size takes a few µs, less than its call and its start.
_LARGEST = 64 << 10
# Shorter rows are the arguments of one operation rather than the elements of a loop.
_LEAST_COPIES = 8
_MOST_LINES = 8
_MOST_ROWS = 1000


@dataclass(frozen=True, slots=True)
class _Rows:
    """Small copies of one line that follow another of its copies directly.

    Attributes:
        work: Their activities.
        first: The activity before the first of them, one for each row of copies.
        last: The last activity of each row of copies.
        direction: Where they copy to.
    """

    work: "NDArray[Any]"
    first: "NDArray[Any]"
    last: "NDArray[Any]"
    direction: str


def find(schedule: Schedule) -> "Iterator[Finding]":
    """Find small copies that follow each other without other work of the GPU between them.

    Trigger: at least eight copies in one direction of less than 64 KiB each, by one line and
    thread, less than 100 µs apart on the host; at least 1 % of the recording is saved.

    Saving: the recording's `Schedule`, replayed with one copy for each row: the others take only
    what they take longer than the shortest one, their calls and those between them take no time.
    The program may compute the values one after the other: ``possible``.
    """
    recording = schedule.recording
    if not recording.tables["api_calls"].num_rows:
        return
    for device in recording.devices:
        for rows in _rows(recording, schedule, device):
            yield from _finding(recording, schedule, rows, device)


def _rows(recording: "Recording", schedule: Schedule, device: int) -> "Iterator[_Rows]":
    """Yield the rows of copies of the lines with the most of them."""
    import numpy as np

    activities = recording.tables["activities"]
    work = np.flatnonzero(schedule.device == device)
    work = work[np.argsort(schedule.begin[work], kind="stable")]
    sizes = plain(activities["bytes"])[schedule.rows[work]]
    directions = codes(activities["copy_kind"], _COPY_KINDS)[schedule.rows[work]]
    is_tiny = (schedule.kind[work] == COPY) & (sizes < _LARGEST) & (schedule.call[work] >= 0)
    is_tiny &= np.isin(directions, list(_DIRECTIONS))
    lines = np.full(len(work), -1)
    lines[is_tiny] = line_numbers(
        recording, stacks_of(recording.tables, schedule.call[work[is_tiny]])
    )
    calls = recording.tables["api_calls"]
    threads, begin, end = (
        plain(calls[name])[schedule.call[work]] for name in ("thread", "time", "end")
    )
    follows = np.zeros(len(work), bool)
    follows[1:] = is_tiny[1:] & is_tiny[:-1] & (lines[1:] == lines[:-1])
    follows[1:] &= (directions[1:] == directions[:-1]) & (threads[1:] == threads[:-1])
    follows[1:] &= (begin[1:] >= begin[:-1]) & (begin[1:] - end[:-1] < LONG_NS)
    starts = np.flatnonzero(is_tiny & ~follows)
    lengths = np.diff(np.append(np.cumsum(follows)[starts], np.count_nonzero(follows)))
    of_start = np.repeat(lengths + 1 >= _LEAST_COPIES, lengths)
    followers = np.flatnonzero(follows)[of_start]
    starts, lengths = starts[lengths + 1 >= _LEAST_COPIES], lengths[lengths + 1 >= _LEAST_COPIES]
    counts = np.bincount(lines[followers])
    for line in np.argsort(-counts, kind="stable")[:_MOST_LINES].tolist():
        for direction, text in _DIRECTIONS.items():
            chosen = (lines[starts] == line) & (directions[starts] == direction)
            mine = (lines[followers] == line) & (directions[followers] == direction)
            if chosen.any():
                first = starts[chosen]
                last = first + lengths[chosen]
                yield _Rows(work[followers[mine]], work[first], work[last], text)


def _finding(
    recording: "Recording", schedule: Schedule, rows: _Rows, device: int
) -> "Iterator[Finding]":
    import numpy as np

    calls = recording.tables["api_calls"]
    between = _calls_between(recording, schedule.call[rows.first], schedule.call[rows.last])
    gaps = between & (host_gaps(schedule, device).length < LONG_NS)
    shorter = schedule.duration.copy()
    shorter[rows.work] -= shorter[rows.work].min()
    change = ScheduleChange(
        duration=shorter, without_wait=between, without_gap=gaps, instant=between
    )
    saved_ns = schedule.saved_alone(change)
    if saved_ns < schedule.relevant_ns:
        return
    count = len(rows.work) + len(rows.first)
    sizes = plain(recording.tables["activities"]["bytes"])[schedule.rows]
    copied = int(sizes[rows.work].sum() + sizes[rows.first].sum())
    stack = int(plain(calls["stack"])[schedule.call[rows.first[0]]])
    spent = schedule.launch_begin()[rows.last] - schedule.launch_begin()[rows.first]
    line = line_of(recording, stack, format_duration(int(spent.sum())))
    yield Finding(
        rule="R21",
        title=(
            f"{text_of(line)} copies {format_bytes(copied)} {rows.direction} in "
            f"{format_count(count)} pieces."
        ),
        reason=(
            f"The pieces follow each other without other work of the GPU between them, and take "
            f"{format_duration(int(spent.sum()))}: each costs a call and a start, which take "
            "longer than the copy."
        ),
        change=(
            "Copy all of it at once: convert the whole array (x.get() or x.tolist()) instead of "
            "its elements, or collect small arrays in one before they are copied."
        ),
        certainty="possible",
        device=device,
        saved_ns=saved_ns,
        schedule=change,
        lines=(line,),
        evidence=Evidence(
            "activities",
            tuple(np.sort(schedule.rows[rows.work[:_MOST_ROWS]]).tolist()),
            (int(schedule.begin[rows.first].min()), int(schedule.end[rows.last].max())),
        ),
    )


def _calls_between(
    recording: "Recording", first: "NDArray[Any]", last: "NDArray[Any]"
) -> "NDArray[Any]":
    """Return the calls of the same thread after each of some calls, until the last of its row."""
    import numpy as np

    calls = recording.tables["api_calls"]
    threads, begin = plain(calls["thread"]), plain(calls["time"])
    order = np.argsort(begin, kind="stable")
    order = order[np.argsort(threads[order], kind="stable")]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    change = np.zeros(len(order) + 1, np.int64)
    np.add.at(change, place[first] + 1, 1)
    np.add.at(change, place[last] + 1, -1)
    between = np.zeros(len(order), bool)
    between[order] = np.cumsum(change[:-1]) > 0
    return between
