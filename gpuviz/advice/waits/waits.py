"""Lines of the program in which the host waits for earlier work of the GPU."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpuviz.advice.evidence import Evidence, Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_numbers, line_of, longest_lines, text_of
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import COPY
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.steady_state import within_cells
from gpuviz.data.call_stacks import NO_STACK
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES
from gpuviz.data.once import Once
from gpuviz.quantities import format_counted, format_duration

_KINDS = DICTIONARIES["host_waits", "kind"]
# Each line costs a replay of the schedule.
_MOST_LINES = 8
_MOST_ROWS = 1000
_NEVER = 2**62


@dataclass(frozen=True, eq=False, slots=True)
class Waits:
    """The waits of one line.

    Attributes:
        all_calls: The line's calls that wait for earlier work, and its synchronizations.
        rows: The rows of ``host_waits`` during which the GPU works.
        calls: Their calls.
        begin: Their begins in ns.
        end: When the GPU had done the earlier work, in ns.
        transfer_ns: The part of all of the line's waits that transfers data.
        is_copy: Whether some of the calls are copies.
        only_synchronizes: Whether the program itself synchronizes streams or the device on this
            line, which waits for nothing else and copies nothing.
        stack: One of the line's call stacks.
        work: All activities but the line's own copies.
    """

    all_calls: np.ndarray
    rows: np.ndarray
    calls: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    transfer_ns: int
    is_copy: bool
    only_synchronizes: bool
    stack: int
    work: np.ndarray

    def time_on(self, schedule: Schedule) -> np.ndarray:
        """Return how long the host waited for each activity, in ns."""
        begin, end = schedule.begin[self.work], schedule.end[self.work]
        return Intervals(self.begin, self.end).within(begin, end)

    def total_ns(self, schedule: Schedule) -> int:
        """Return how long the host waited while any of the activities ran, in ns."""
        busy = Intervals(schedule.begin[self.work], schedule.end[self.work])
        return int(busy.within(self.begin, self.end).sum())


@dataclass(frozen=True, eq=False, slots=True)
class RemovedWaits:
    """What a recording is without the waits of one line.

    Attributes:
        waited_ns: How long the host waited in them while the GPU worked.
        lines: The waiting line, and those whose work it waited for, longest first.
        device: The device of the activity that the host waited for longest.
        reason: Sentences on the work that was waited for, and on what follows the waits.
        evidence: The longest waits.
        change: The schedule without the waits.
        saved_ns: What that saves.
    """

    waited_ns: int
    lines: tuple[Line, ...]
    device: int
    reason: str
    evidence: Evidence
    change: ScheduleChange
    saved_ns: int

    def finding(self, rule: str, *, title: str, reason: str, change: str) -> Finding:
        """Return the finding of a rule about these waits; whether they can go is the program's."""
        return Finding(
            rule=rule,
            title=title,
            reason=reason,
            change=change,
            certainty="possible",
            device=self.device,
            saved_ns=self.saved_ns,
            lines=self.lines,
            evidence=self.evidence,
            schedule=self.change,
        )


@Once
def longest_waits(schedule: Schedule) -> tuple[Waits, ...]:
    """Return the lines whose calls wait for work that was launched before.

    During ``waiting_ns`` of the line's calls (the derived table ``host_waits``), the GPU works for
    at least 1 % of the recording on activities other than the line's own copies, and longer than
    the calls transfer data (``transfer_ns``). Waits after the last launch, of the recording or of a
    notebook cell, do not count. They are computed once for a schedule.
    """
    return tuple(each for each in _longest(schedule) if _is_long(schedule, each))


def longest_without(schedule: Schedule, waits: Waits, calls: np.ndarray) -> Waits | None:
    """Return the waits of a line without those in some calls; None if `longest_waits` had none."""
    left, of_left = (~np.isin(each, calls) for each in (waits.calls, waits.all_calls))
    if not left.any():
        return None
    table = derived(schedule.recording)["host_waits"]
    removed = np.isin(plain(table["call"]), waits.all_calls[~of_left])
    rest = replace(
        waits,
        all_calls=waits.all_calls[of_left],
        rows=waits.rows[left],
        calls=waits.calls[left],
        begin=waits.begin[left],
        end=waits.end[left],
        transfer_ns=waits.transfer_ns - int(_filled(table["transfer_ns"])[removed].sum()),
    )
    return rest if _is_long(schedule, rest) else None


def without_waits(schedule: Schedule, waits: Waits) -> RemovedWaits:
    """Return what a recording is without the waits of one line."""
    recording = schedule.recording
    removed = np.zeros(recording.tables["api_calls"].num_rows, bool)
    removed[waits.all_calls] = True
    change = ScheduleChange(without_wait=removed)
    saved_ns, waited_ns = schedule.saved_alone(change), waits.total_ns(schedule)
    time_ns = waits.time_on(schedule)
    launched = stacks_of(recording.tables, schedule.call[waits.work])
    behind = longest_lines(recording, launched, time_ns)
    most_ns = np.bincount(line_numbers(recording, launched), time_ns).max()
    longest = waits.work[int(np.argmax(time_ns))]
    rows = waits.rows[np.argsort(waits.begin - waits.end, kind="stable")[:_MOST_ROWS]]
    return RemovedWaits(
        waited_ns=waited_ns,
        lines=(line_of(recording, waits.stack, format_duration(waited_ns)), *behind),
        device=int(schedule.device[longest]),
        reason=_reason(schedule, waits, behind[0], saved_ns, is_alone=most_ns <= waited_ns),
        evidence=Evidence(
            "host_waits",
            tuple(np.sort(rows).tolist()),
            (int(waits.begin.min()), int(waits.end.max())),
        ),
        change=change,
        saved_ns=saved_ns,
    )


def _is_long(schedule: Schedule, waits: Waits) -> bool:
    return waits.total_ns(schedule) >= max(schedule.relevant_ns, waits.transfer_ns)


def _filled(column: pa.ChunkedArray) -> np.ndarray:
    import pyarrow.compute as pc

    filled: np.ndarray = plain(pc.fill_null(column, 0))
    return filled


def _longest(schedule: Schedule) -> Iterator[Waits]:
    """Yield the lines during whose waits the GPU works longest."""
    recording = schedule.recording
    table = derived(recording)["host_waits"]
    if not table.num_rows:
        return
    begin, calls, stacks = (plain(table[name]) for name in ("time", "call", "stack"))
    end = begin + _filled(table["waiting_ns"])
    transfer = _filled(table["transfer_ns"])
    kinds = codes(table["kind"], _KINDS)
    is_copy = kinds >= _KINDS.index("memcpy")
    is_other = is_copy | (kinds == _KINDS.index("event_synchronize"))
    launched = stacks_of(recording.tables, schedule.call)
    numbers = line_numbers(recording, np.concatenate([stacks, launched]))
    lines, of_work = numbers[: len(stacks)], numbers[len(stacks) :]
    worked = Intervals(schedule.begin, schedule.end).within(begin, end)
    launches = np.sort(schedule.launch_begin()[schedule.call >= 0], kind="stable")
    later = np.append(launches, _NEVER)[np.searchsorted(launches, end)]
    useful = (calls >= 0) & (later < _NEVER) & within_cells(recording, begin, later)
    worked[~useful] = 0
    # A copy that the program waits for is followed by a synchronization, which would wait instead.
    useful &= (worked > 0) | ~is_copy
    totals = np.bincount(lines, weights=worked)
    for line in np.argsort(-totals, kind="stable")[:_MOST_LINES].tolist():
        rows = np.flatnonzero((lines == line) & (worked > 0))
        copies = (of_work == line) & (schedule.kind == COPY)
        is_synchronization = not (is_other[lines == line].any() or copies.any())
        if rows.size:
            yield Waits(
                calls[(lines == line) & useful],
                rows,
                calls[rows],
                begin[rows],
                end[rows],
                int(transfer[lines == line].sum()),
                bool(is_copy[rows].any()),
                is_synchronization and bool(is_own(recording, stacks[lines == line]).all()),
                int(stacks[rows[0]]),
                np.flatnonzero((schedule.kind != COPY) | (of_work != line)),
            )


def _reason(
    schedule: Schedule, waits: Waits, longest: Line, saved_ns: int, *, is_alone: bool
) -> str:
    """Return what was waited for; work that overlaps takes longer in all than the waits."""
    transfer = (
        f" The copies themselves take {format_duration(waits.transfer_ns)}."
        if waits.is_copy and waits.transfer_ns
        else ""
    )
    after = (
        f"After the waits the GPU idles until the next launch; without them the work would end "
        f"{format_duration(saved_ns)} earlier."
        if saved_ns >= schedule.relevant_ns
        else "The GPU is busy during the waits and hardly idle after them, so that removing them "
        "saves almost nothing."
    )
    share = f"{longest.amount} of it" if is_alone else "mostly"
    of_line = "" if longest.site == NO_STACK else f", {share} for {text_of(longest)}"
    return (
        f"The host waits in {format_counted(len(waits.rows), 'call')} for work that was launched "
        f"before{of_line}.{transfer} {after}"
    )
