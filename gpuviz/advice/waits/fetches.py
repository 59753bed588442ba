"""Lines of the program that read small results from the GPU: scalars and sizes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from gpuviz.advice.evidence import Evidence, Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.host_gaps import HostGaps, host_gaps
from gpuviz.advice.host_lines import line_numbers, line_of, longest_lines, text_of
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import COPY, KERNEL, MOST_SHOWN
from gpuviz.advice.source.own_lines import is_own
from gpuviz.advice.waits.runs import LEAST_LENGTH
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.steady_state import within_cells
from gpuviz.data.columns import codes, plain
from gpuviz.data.once import Once
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_counted, format_duration

_TO_HOST = DICTIONARIES["activities", "copy_kind"].index("device_to_host")
# A few counts. What a program reads to use it elsewhere is larger.
_MOST_BYTES = 64
# A complex number in double precision.
_SCALAR_BYTES = 16
_LEAST_READS = 3
# A loop that asks only in one of so many rounds whether to go on makes as many more at most.
ASKED_EACH = 10
# Each line costs a replay of the schedule.
_MOST_LINES = 8
_NEVER = 2**62
# A launch by CuPy takes 10 to 30 µs of Python (measured on an H200's host).
_MOST_LAUNCH_NS = 30_000
# Kernels that place the elements that a mask or a condition selects: CuPy's and CUB's.
_SELECTS = re.compile(
    r"cupy_(?!(cub_)?count_)\w*nonzero|.*\bDevice(Select|RunLengthEncode|ReduceByKey)\w*Kernel\b"
)
# Kernels that count them, if others of the line select; a cumulative sum alone counts nothing.
_SCANS = re.compile(r"cupy_(\w*inclusive_scan|scan_|bsum_)|.*\bDeviceScan\w*Kernel\b")
# Kernels that make numbers of a mask, which CuPy then counts.
_NUMBERS = re.compile(r"cupy_copy__bool_int(32|64)$")
# Kernels that move the elements that a mask selects, whose places were counted before.
_MOVES = re.compile(r"cupy_(getitem|scatter\w*)_mask")


@dataclass(frozen=True, eq=False, slots=True)
class Fetches:
    """Copies of at most 64 bytes to the host by one line, in which the host waits for the GPU.

    Attributes:
        copies: The activities that copy.
        calls: The calls that wait: the copies, and the line's synchronizations.
        rows: Their rows of ``host_waits``.
        stack: One of the line's call stacks.
        counting: The line's kernels that count what a mask selects, if others then move it, or
            compute what a loop can leave out.
        is_size: Whether the results are the sizes of what a mask or a condition selects.
        is_scalar: Whether the program itself reads a number again and again, after new work.
        ends_loop: Whether these are the reads that a loop can leave out which asks less often
            whether to go on.
        comparing: Python's function that compares the elements of an array for which it reads them,
            and the array; empty of others.
    """

    copies: np.ndarray
    calls: np.ndarray
    rows: np.ndarray
    stack: int
    counting: np.ndarray
    is_size: bool
    is_scalar: bool
    ends_loop: bool = False
    comparing: tuple[str, ...] = ()

    def asked_less_often(self, schedule: Schedule) -> "Fetches":
        """Return what is left out if a loop asks only in one of ten rounds: reads and kernels."""
        called = schedule.called[schedule.call[self.copies]]
        order = np.argsort(called, kind="stable")
        copies, called = self.copies[order], called[order]
        is_left_out = np.arange(1, len(copies) + 1) % ASKED_EACH != 0
        waits = plain(derived(schedule.recording)["host_waits"]["time"])
        calls, rows = (
            each[is_left_out[np.maximum(np.searchsorted(called, times, side="right") - 1, 0)]]
            for each, times in (
                (self.calls, schedule.called[self.calls]),
                (self.rows, waits[self.rows]),
            )
        )
        is_own = (schedule.kind == KERNEL) & (schedule.lines == schedule.lines[copies[0]])
        kernels = np.flatnonzero(is_own & (schedule.call >= 0))
        read = np.searchsorted(called, schedule.called[schedule.call[kernels]])
        return replace(
            self,
            copies=copies[is_left_out],
            calls=calls,
            rows=rows,
            counting=kernels[np.append(is_left_out, False)[read]],
            ends_loop=True,
        )

    def blocked_ns(self, schedule: Schedule) -> int:
        """Return how long the host is in these calls."""
        return Intervals(schedule.called[self.calls], schedule.returned[self.calls]).length

    def are_elements(self, schedule: Schedule) -> bool:
        """Return whether nearly all follow each other without other work of the device."""
        work = np.flatnonzero(schedule.device == self.device(schedule))
        is_copy = np.isin(work[np.argsort(schedule.begin[work], kind="stable")], self.copies)
        following = np.count_nonzero(is_copy[1:] & is_copy[:-1])
        return bool(following >= (1 - 1 / LEAST_LENGTH) * len(self.copies))

    def count(self, schedule: Schedule) -> int:
        """Return how often the line reads a result."""
        return len(np.unique(schedule.call[self.copies]))

    def without(self, schedule: Schedule) -> ScheduleChange:
        """Return the schedule if the program did not read the results.

        A mask that is applied without a copy of what it selects needs no count of it either. What
        the library does in Python before a read goes with it: about as much as before a launch,
        which is at most the time since the previous call.
        """
        removed = np.zeros(len(schedule.called), bool)
        removed[self.calls] = True
        gaps = host_gaps(schedule.recording, self.device(schedule))
        follows = removed & (gaps.previous >= 0) & removed[gaps.previous]
        if len(self.counting):
            removed[schedule.call[self.counting]] = True
            follows = removed
        begins = removed & ((gaps.previous < 0) | ~removed[gaps.previous]) & gaps.is_short
        work = np.concatenate([self.copies, self.counting])
        duration, joined = schedule.duration.copy(), np.zeros(len(schedule.duration), bool)
        duration[work], joined[work] = 0, True
        return ScheduleChange(
            duration=duration,
            without_wait=removed,
            without_gap=follows & gaps.is_short,
            shorter_gap=np.where(begins, self._launch_ns(schedule, gaps), 0),
            instant=removed,
            joined=joined,
        )

    def _launch_ns(self, schedule: Schedule, gaps: HostGaps) -> int:
        """Return what a launch typically costs the host since the previous call, in ns."""
        launches = np.unique(schedule.call[(schedule.kind == KERNEL) & (schedule.call >= 0)])
        usual = launches[gaps.is_short[launches] & (gaps.previous[launches] >= 0)]
        follows = np.isin(gaps.previous[usual], self.calls)
        usual = usual if follows.all() else usual[~follows]
        return int(min(np.median(gaps.length[usual]), _MOST_LAUNCH_NS)) if len(usual) else 0

    def device(self, schedule: Schedule) -> int:
        """Return the ordinal of the device that is read."""
        return int(schedule.device[self.copies[0]])

    def line(self, schedule: Schedule) -> Line:
        """Return the line, with the time for which the host is in these calls."""
        blocked = format_duration(self.blocked_ns(schedule))
        return line_of(schedule.recording, self.stack, blocked)

    def finding(
        self, schedule: Schedule, rule: str, *, title: str, reason: str, change: str
    ) -> Finding:
        """Return the finding of a rule about this line; whether it needs them is the program's."""
        without = self.without(schedule)
        begin, end = schedule.called[self.calls], schedule.returned[self.calls]
        awaited = self._awaited(schedule)
        return Finding(
            rule=rule,
            title=title,
            reason=f"{self._reason(schedule, awaited)} {reason}".rstrip(),
            change=change,
            certainty="possible",
            device=self.device(schedule),
            saved_ns=schedule.saved_alone(without),
            lines=(self.line(schedule), *awaited),
            evidence=Evidence(
                "host_waits",
                tuple(self.rows[:MOST_SHOWN].tolist()),
                (int(begin.min()), int(end.max())),
            ),
            schedule=without,
        )

    def _reason(self, schedule: Schedule, awaited: tuple[Line, ...]) -> str:
        sizes = plain(schedule.recording.tables["activities"]["bytes"])
        most = format_bytes(int(sizes[schedule.rows[self.copies]].max()))
        earlier = (
            f", {awaited[0].amount} of it while {text_of(awaited[0])} works" if awaited else ""
        )
        return (
            f"In {format_counted(len(self.calls), 'call')} the host waits "
            f"{format_duration(self.blocked_ns(schedule))} until the GPU has done what was "
            f"launched before{earlier}, and has copied at most {most}. Meanwhile it launches "
            "nothing, so that the GPU then waits for the next launch."
        )

    def _awaited(self, schedule: Schedule) -> tuple[Line, ...]:
        """Return the lines whose work runs while the host waits, longest first."""
        work = np.setdiff1d(np.flatnonzero(schedule.call >= 0), self.copies)
        waiting = Intervals(schedule.called[self.calls], schedule.returned[self.calls])
        time_ns = waiting.within(schedule.begin[work], schedule.end[work])
        stacks = stacks_of(schedule.recording.tables, schedule.call[work])
        return longest_lines(schedule.recording, stacks, time_ns)


@Once
def fetches(schedule: Schedule) -> tuple[Fetches, ...]:
    """Return the lines that read small results, those in which the host waits longest first.

    A line copies at most 64 bytes at a time to the host, which waits there or in its next call, as
    PyTorch does after a copy to pinned memory, and launches work later, in the same notebook cell
    if there are cells. They are computed once for a schedule.
    """
    return tuple(_longest(schedule))


def fetch_of(schedule: Schedule, calls: np.ndarray) -> Fetches | None:
    """Return the fetches that some calls belong to; None if there are none."""
    return next((each for each in fetches(schedule) if np.isin(each.calls, calls).any()), None)


def _longest(schedule: Schedule) -> Iterator[Fetches]:
    recording = schedule.recording
    waits, activities = derived(recording)["host_waits"], recording.tables["activities"]
    kinds = codes(activities["copy_kind"], DICTIONARIES["activities", "copy_kind"])[schedule.rows]
    to_host = np.flatnonzero((schedule.kind == COPY) & (kinds == _TO_HOST) & (schedule.call >= 0))
    if not (waits.num_rows and len(to_host)):
        return
    calls = plain(waits["call"])
    launches = np.sort(schedule.launch_begin()[schedule.call >= 0], kind="stable")
    begin, end = (plain(waits[name]) for name in ("time", "end"))
    later = np.append(launches, _NEVER)[np.searchsorted(launches, end)]
    is_useful = (calls >= 0) & (later < _NEVER) & within_cells(recording, begin, later)
    launched = np.flatnonzero(schedule.call >= 0)
    stacks = stacks_of(recording.tables, schedule.call[launched])
    numbers = line_numbers(recording, np.concatenate([plain(waits["stack"]), stacks]))
    of_wait = numbers[: waits.num_rows]
    line = np.full(len(schedule.call), -1)
    line[launched] = numbers[waits.num_rows :]
    sizes = plain(activities["bytes"])[schedule.rows]
    lines = np.setdiff1d(line[to_host], line[to_host[sizes[to_host] > _MOST_BYTES]])
    is_useful &= np.isin(of_wait, lines)
    blocked = np.bincount(of_wait[is_useful], (end - begin)[is_useful])
    for number in np.argsort(-blocked, kind="stable")[:_MOST_LINES].tolist():
        rows = np.flatnonzero(is_useful & (of_wait == number))
        of_line = to_host[line[to_host] == number]
        copies = of_line[_are_awaited(schedule, of_line, calls[rows])]
        if len(copies):
            kernels = np.flatnonzero((line == number) & (schedule.kind == KERNEL))
            waiting = np.union1d(calls[rows], schedule.call[copies])
            yield _fetches(schedule, copies, waiting, rows, kernels)


def _are_awaited(schedule: Schedule, copies: np.ndarray, waiting: np.ndarray) -> np.ndarray:
    """Return which copies of a line are among its calls that wait, or directly before one."""
    device = int(schedule.device[copies[0]]) if len(copies) else 0
    previous = host_gaps(schedule.recording, device).previous[waiting]
    awaited: np.ndarray = np.isin(schedule.call[copies], np.union1d(waiting, previous))
    return awaited


def _fetches(
    schedule: Schedule,
    copies: np.ndarray,
    calls: np.ndarray,
    rows: np.ndarray,
    kernels: np.ndarray,
) -> Fetches:
    tables = schedule.recording.tables
    selecting, scanning, moving, numbers = (
        _named(schedule, kernels, each) for each in (_SELECTS, _SCANS, _MOVES, _NUMBERS)
    )
    counting = reduce(np.union1d, (selecting, scanning, numbers))
    stacks = stacks_of(tables, schedule.call[copies])
    is_size = bool(len(selecting) or len(moving))
    sizes = plain(tables["activities"]["bytes"])[schedule.rows[copies]]
    others = np.setdiff1d(np.flatnonzero(schedule.kind != COPY), copies)
    launched = np.sort(schedule.launch_begin()[others[schedule.call[others] >= 0]])
    rounds = np.unique(np.searchsorted(launched, schedule.launch_begin()[copies]))
    is_scalar = not is_size and len(rounds) >= _LEAST_READS
    is_scalar = is_scalar and bool((sizes <= _SCALAR_BYTES).all())
    return Fetches(
        copies,
        calls,
        rows,
        int(stacks[0]),
        counting if len(moving) else counting[:0],
        is_size,
        is_scalar and bool(is_own(schedule.recording, stacks).all()),
    )


def _named(schedule: Schedule, kernels: np.ndarray, pattern: re.Pattern[str]) -> np.ndarray:
    """Return the kernels with a name that matches."""
    tables = schedule.recording.tables
    names = plain(tables["activities"]["name"])[schedule.rows[kernels]]
    found: np.ndarray = kernels[are_named(tables, names, pattern.match)]
    return found
