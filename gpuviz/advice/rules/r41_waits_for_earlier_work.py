"""R41: a copy or synchronization in which the host waits for earlier work of the GPU."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz.advice.finding import Evidence, Finding, Line
from gpuviz.advice.host_gaps import within_cells
from gpuviz.advice.host_lines import line_numbers, line_of, longest_lines, text_of
from gpuviz.advice.intervals import Intervals
from gpuviz.advice.schedule import Schedule, ScheduleChange
from gpuviz.advice.trace import COPY
from gpuviz.analysis.columns import codes, plain
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_counted, format_duration
from gpuviz.recording.derived import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.recording.recording import Recording

_KINDS = DICTIONARIES["host_waits", "kind"]
# Each line costs a replay of the schedule.
_MOST_LINES = 8
_MOST_ROWS = 1000
_NEVER = 2**62


@dataclass(frozen=True, slots=True)
class _Waits:
    """The waits of one line.

    Attributes:
        all_calls: The line's calls that wait for earlier work, and its synchronizations.
        rows: The rows of ``host_waits`` during which the GPU works.
        begin: Their begins in ns.
        end: When the GPU had done the earlier work, in ns.
        transfer_ns: The part of all of the line's waits that transfers data.
        is_copy: Whether some of the calls are copies.
        stack: One of the line's call stacks.
        work: All activities but the line's own copies.
    """

    all_calls: "NDArray[Any]"
    rows: "NDArray[Any]"
    begin: "NDArray[Any]"
    end: "NDArray[Any]"
    transfer_ns: int
    is_copy: bool
    stack: int
    work: "NDArray[Any]"

    def time_on(self, schedule: Schedule) -> "NDArray[Any]":
        """Return how long the host waited for each activity, in ns."""
        begin, end = schedule.begin[self.work], schedule.end[self.work]
        return Intervals(self.begin, self.end).within(begin, end)

    def total_ns(self, schedule: Schedule) -> int:
        """Return how long the host waited while any of the activities ran, in ns."""
        busy = Intervals(schedule.begin[self.work], schedule.end[self.work])
        return int(busy.within(self.begin, self.end).sum())


def find(schedule: Schedule) -> "Iterator[Finding]":
    """Find lines whose calls wait for work that was launched before.

    Trigger: during ``waiting_ns`` of the line's calls (the derived table ``host_waits``), the GPU
    works for at least 1 % of the recording on activities other than the line's own copies, and
    longer than the calls transfer data (``transfer_ns``). Waits after the last launch, of the
    recording or of a notebook cell, do not count.

    Saving: the recording's `Schedule`, replayed without any wait of the line. It is the time for
    which the GPU idles after the waits because the host launches the next work too late. A GPU that
    is always busy saves nothing. Whether the program needs the value at once is not recorded:
    ``possible``.
    """
    recording = schedule.recording
    if not recording.derived["host_waits"].num_rows:
        return
    for waits in _longest(recording, schedule):
        waited_ns = waits.total_ns(schedule)
        if waited_ns >= max(schedule.relevant_ns, waits.transfer_ns):
            yield _finding(recording, schedule, waits, waited_ns)


def _longest(recording: "Recording", schedule: Schedule) -> "Iterator[_Waits]":
    """Yield the lines during whose waits the GPU works longest."""
    import numpy as np
    import pyarrow.compute as pc

    table = recording.derived["host_waits"]
    begin, calls, stacks = (plain(table[name]) for name in ("time", "call", "stack"))
    end = begin + plain(pc.fill_null(table["waiting_ns"], 0))
    transfer = plain(pc.fill_null(table["transfer_ns"], 0))
    is_copy = codes(table["kind"], _KINDS) >= _KINDS.index("memcpy")
    launched = stacks_of(recording.tables, schedule.call)
    numbers = line_numbers(recording, np.concatenate([stacks, launched]))
    lines, of_work = numbers[: len(stacks)], numbers[len(stacks) :]
    worked = Intervals(schedule.begin, schedule.end).within(begin, end)
    launches = np.sort(schedule.launch_begin()[schedule.call >= 0])
    later = np.append(launches, _NEVER)[np.searchsorted(launches, end)]
    useful = (calls >= 0) & (later < _NEVER) & within_cells(recording, begin, later)
    worked[~useful] = 0
    # A copy that the program waits for is followed by a synchronization, which would wait instead.
    useful &= (worked > 0) | ~is_copy
    totals = np.bincount(lines, weights=worked)
    for line in np.argsort(-totals, kind="stable")[:_MOST_LINES].tolist():
        rows = np.flatnonzero((lines == line) & (worked > 0))
        if rows.size:
            yield _Waits(
                calls[(lines == line) & useful],
                rows,
                begin[rows],
                end[rows],
                int(transfer[lines == line].sum()),
                bool(is_copy[rows].any()),
                int(stacks[rows[0]]),
                np.flatnonzero((schedule.kind != COPY) | (of_work != line)),
            )


def _finding(recording: "Recording", schedule: Schedule, waits: _Waits, waited_ns: int) -> Finding:
    import numpy as np

    removed = np.zeros(recording.tables["api_calls"].num_rows, bool)
    removed[waits.all_calls] = True
    change = ScheduleChange(without_wait=removed)
    saved_ns = schedule.saved_alone(change)
    time_ns = waits.time_on(schedule)
    launched = stacks_of(recording.tables, schedule.call[waits.work])
    line = line_of(recording, waits.stack, format_duration(waited_ns))
    behind = longest_lines(recording, launched, time_ns)
    longest = waits.work[int(np.argmax(time_ns))]
    rows = waits.rows[np.argsort(waits.begin - waits.end, kind="stable")[:_MOST_ROWS]]
    return Finding(
        rule="R41",
        title=f"{text_of(line)} waits {format_duration(waited_ns)} for earlier work of the GPU.",
        reason=_reason(schedule, waits, behind[0], saved_ns),
        change=_change(waits),
        certainty="possible",
        device=int(schedule.device[longest]),
        saved_ns=saved_ns,
        schedule=change,
        lines=(line, *behind),
        evidence=Evidence(
            "host_waits",
            tuple(np.sort(rows).tolist()),
            (int(waits.begin.min()), int(waits.end.max())),
        ),
    )


def _reason(schedule: Schedule, waits: _Waits, longest: Line, saved_ns: int) -> str:
    transfer = (
        f" The copies themselves take {format_duration(waits.transfer_ns)}."
        if waits.is_copy
        else ""
    )
    after = (
        f"After the waits the GPU idles until the next launch; without them the work would end "
        f"{format_duration(saved_ns)} earlier."
        if saved_ns >= schedule.relevant_ns
        else "The GPU is busy during the waits and hardly idle after them, so that removing them "
        "saves almost nothing."
    )
    return (
        f"The host waits in {format_counted(len(waits.rows), 'call')} for work that was launched "
        f"before, {longest.amount} of it for {text_of(longest)}.{transfer} {after}"
    )


def _change(waits: _Waits) -> str:
    if waits.is_copy:
        return (
            "Keep the value on the GPU and read it when the program needs it: after the loop, or "
            "every few iterations. Until then the host can launch the next work."
        )
    return (
        "Wait only where the host needs the result, so that it can launch the next work "
        "meanwhile. Work on one stream runs in order without synchronization."
    )
