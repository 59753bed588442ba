"""R43: the GPU is idle while the host computes between two calls."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.finding import Evidence, Finding, Line
from gpuviz.advice.host_gaps import LONG_NS, HostGaps, host_gaps
from gpuviz.advice.host_lines import between, line_of, text_of
from gpuviz.advice.libraries import MODULES_ON_THE_GPU, makes_modules
from gpuviz.advice.rule import Rule
from gpuviz.advice.sampled_compilations import is_compilation
from gpuviz.advice.schedule import Schedule, ScheduleChange
from gpuviz.advice.staging import is_staging
from gpuviz.advice.work_groups import work_groups
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.handovers import handing_threads
from gpuviz.analysis.host_work import host_work, is_sampled
from gpuviz.analysis.intervals import Intervals, overlaps
from gpuviz.analysis.launches import CallSites, calls_of, user_frames
from gpuviz.analysis.preparation import PREPARATIONS
from gpuviz.analysis.sampled_work import Work
from gpuviz.analysis.steady_state import steady_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import ACTIONS
from gpuviz.quantities import format_counted, format_duration, format_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from gpuviz.data.call_stacks import Frame
    from gpuviz.data.recording_data import RecordingData

RULES = (
    Rule(
        "R43",
        "a GPU starved by the host",
        "at least three times, and in 10 % of the rounds of that step of the program, two calls of "
        "a thread are 250 µs or more apart while the GPU is idle; time between cells, and before "
        "the first launch of a kernel or while its library starts, does not count; samples of the "
        "host name the line that ran, and without them the calls and allocations around the gap "
        "narrow the lines down; lines that run in the same gaps are one finding, with the call "
        "that all of them are in; while a thread of a library has nothing to launch, the line is "
        "that of the thread that hands it work; a wait in which another thread launches work does "
        "not count, nor does the Python code of a library that launches work, such as PyTorch, if "
        "it takes less than 2 ms each time or is in less than a tenth of the runs of its line, nor "
        "time in less than a tenth of the runs of a line that then launches work itself; "
        "time in a library function that is as long as a copy to pinned memory of the array that "
        "it then uploads is called such a copy",
        "do the work on the GPU, or while it works",
    ),
)

# Of one gap it is not known whether it is part of the computation, or of its preparation.
_LEAST_TIMES = 3
# The first time often includes preparation; as a multiple of the longest later time.
_MOST_OF_FIRST = 2
# On average: less is what a library such as PyTorch needs for its own launches.
_LEAST_OF_LIBRARY_NS = 2_000_000
# Of the rounds of a step of the program, such as work that is done every tenth time.
_LEAST_OF_ROUNDS = 0.1
_MOST_PLACES = 8
# Lines are compared in pairs.
_MOST_JOINED = 64
# By the kind of work that was sampled; "": any other, or unknown.
_ADVICE = {
    "": (
        "Do this work on the GPU, or while the GPU works: launch the next work before it, or do it "
        "in another thread."
    ),
    "waiting": (
        "Let another thread wait here while the GPU works, and hand over what it waited for: a "
        "queue with the next few batches, for example."
    ),
    "gil": (
        "Only one thread of a process runs Python at a time: move the Python code of the other "
        "thread into a process, or launch the next work before it starts."
    ),
    "collection": (
        "Call `gc.freeze()` once the objects that stay exist, so that collections skip them, or "
        "`gc.disable()` before the loop and `gc.collect()` while the GPU works."
    ),
}
_UPLOAD_ADVICE = (
    "Keep the array on the GPU if the program has it there already or changes little of it. "
    "Otherwise compute or read it in pinned memory, made once with `cupyx.empty_pinned`, and "
    "upload it with `.set(...)` of an array on the GPU, which needs no copy on the host."
)
_LOADER_ADVICE = (
    "Let processes load batches ahead, with `DataLoader(..., num_workers=4, "
    "persistent_workers=True)`, more of them, or a larger `prefetch_factor`; or make a batch "
    "cheaper to load."
)
_LAUNCHES_ADVICE = (
    "This is Python code of the library, which launches the GPU's work. Let the host run ahead of "
    "the GPU by waiting less, and shorten it by fewer, larger operations, `torch.compile` or a "
    "CUDA graph for example."
)
_MOST_ROWS = 1000
_MOST_LINES = 8


@dataclass(frozen=True, slots=True)
class _Place:
    """What the host does: the calls after it, how long it takes, and the idle time.

    Attributes:
        first: The line before it, or the line that was sampled.
        last: The line after it, or the same.
        host_ns: How long it takes before each of the calls.
        is_upload: Whether a library copies an array to pinned memory, to upload it.
        work: What was sampled; None if only the lines around it are known.
        lines: The lines that were sampled, with their times, longest first; empty if it is one.
        is_call: Whether these lines are in the call of the first line.
        makes_modules: Whether the host initializes modules of PyTorch, or copies them.
    """

    first: "Line | Frame"
    last: "Line | Frame"
    stacks: tuple[int, int]
    calls: "NDArray[Any]"
    idle_ns: int
    host_ns: "NDArray[Any]"
    is_upload: bool
    work: Work | None = None
    lines: tuple[Line, ...] = ()
    is_call: bool = False
    makes_modules: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether lines of the program were sampled at work."""
        work = self.work
        return work is not None and not work.loads and work.kind not in _ADVICE

    @property
    def text(self) -> str:
        """What the host does, after "while the host"."""
        if self.is_upload:
            return f"copies an array to pinned memory, to upload it, in {text_of(self.last)}"
        if self.work is None:
            return f"works {self._between}"
        if self.work.loads or self.work.is_wait:
            return f"is {self.work.text}"
        if self.lines:
            further = 0 if self.is_call else len(self.lines) - 1
            more = f" and {format_counted(further, 'more line', 'more lines')}" if further else ""
            return f"runs {text_of(self.first)}{more}"
        verb = "does" if self.work.kind == "collection" else "runs"
        return f"{verb} {self.work.text}"

    @property
    def advice(self) -> str:
        """What to do about it."""
        if self.is_upload:
            return _UPLOAD_ADVICE
        if self.work is not None and self.work.loads:
            return _LOADER_ADVICE
        if self.makes_modules:
            return MODULES_ON_THE_GPU
        if self.work is not None and self.work.is_of_launches:
            return _LAUNCHES_ADVICE
        return _ADVICE.get("" if self.work is None else self.work.kind, _ADVICE[""])

    @property
    def _between(self) -> str:
        before, after = text_of(self.first), text_of(self.last)
        if self.first == self.last:
            # A line that runs again and again has the same stacks before and after either.
            return f"within or between the runs of {before}"
        return f"between {before} and {'the next ' if self._is_next_round else ''}{after}"

    @property
    def _is_next_round(self) -> bool:
        """Whether the second line is before the first in its function, as in a loop."""
        lines = [getattr(each, "line", 0) for each in (self.first, self.last)]
        return lines[1] < lines[0]


def find(schedule: Schedule) -> "Iterator[Finding]":
    """Find places of the program where the host computes while the GPU has nothing to do.

    Trigger: at least three times, two calls of a thread are at least 250 µs apart, more than a
    launch costs, and the device is idle meanwhile with the cause ``host`` (see
    `gpuviz.analysis.overlap.LaneOverlap`), in total for at least 1 % of the recording, and so in a
    tenth of the rounds of that step: pauses of Python and of other threads are rarer. The places
    are the lines that were sampled for at least 250 µs of a gap, or for the longest part of it,
    each with the time of its own samples; gaps without samples do not count. Lines that work in the
    same gaps are one place, with those in the innermost call that contains them but not the
    launches around the gaps; see `gpuviz.advice.work_groups`. A wait in which another thread
    launches work, such as a backward pass, does not count. In recordings without any, the place is
    where the call stacks of the calls before and after differ, or those of the allocations between
    them: of the parts of a gap, the longest. Time between notebook cells does not count, nor do
    gaps before the first launch of a kernel, which is compiled or loaded then, as is its library.
    The first gap of a place does not count if it is twice as long as any later one, for the same
    reason.

    Saving: the recording's `Schedule`, replayed without this time. The work has to be done
    somewhere, so that it is ``possible``.
    """
    recording = schedule.recording
    if not recording.tables["api_calls"].num_rows:
        return
    for device in recording.devices:
        gaps = host_gaps(schedule.recording, device)
        places = _sampled(recording, gaps, device) if is_sampled(recording) else None
        for place in _places(recording, gaps) if places is None else places:
            enough = place.idle_ns >= schedule.relevant_ns
            if enough and len(place.calls) >= _LEAST_TIMES:
                yield _finding(recording, schedule, gaps, place, device)


def _places(recording: "RecordingData", gaps: HostGaps) -> list[_Place]:
    """Return the places with the most idle time, most first."""
    calls = np.flatnonzero(gaps.is_long & (gaps.idle > 0))
    calls = calls[_share_of_rounds(recording, gaps)[calls] >= _LEAST_OF_ROUNDS]
    pairs = _longest_parts(recording, gaps, calls)
    found: dict[Any, list[int]] = {}
    lines: dict[Any, tuple[tuple[Line | Frame, Line | Frame], tuple[int, int]]] = {}
    distinct, numbers = np.unique(pairs, axis=0, return_inverse=True)
    order = np.argsort(numbers.ravel(), kind="stable")
    bounds = np.searchsorted(numbers.ravel()[order], np.arange(len(distinct) + 1))
    for number, (before, after) in enumerate(distinct.tolist()):
        two = between(recording, before, after) or (
            line_of(recording, before, ""),
            line_of(recording, after, ""),
        )
        key = two[0].site, two[1].site
        lines.setdefault(key, (two, (before, after)))
        found.setdefault(key, []).extend(calls[order[bounds[number] : bounds[number + 1]]].tolist())
    places = []
    for key, of_place in found.items():
        rows = np.sort(np.array(of_place))
        if gaps.idle[rows[0]] > _MOST_OF_FIRST * gaps.idle[rows[1:]].max(initial=0):
            rows = rows[1:]
        (first, last), stacks_of_place = lines[key]
        places.append(
            _Place(
                first,
                last,
                stacks_of_place,
                rows,
                idle_ns=int(gaps.idle[rows].sum()),
                host_ns=gaps.length[rows],
                is_upload=is_staging(recording, stacks_of_place, rows, gaps.length[rows]),
            )
        )
    return sorted(places, key=lambda place: -place.idle_ns)[:_MOST_PLACES]


def _sampled(recording: "RecordingData", gaps: HostGaps, device: int) -> list[_Place]:
    """Return what was sampled in the gaps, the work with the most idle time first."""
    found = host_work(recording, device)
    calls = np.flatnonzero(gaps.is_long & (gaps.idle > 0))
    table = recording.tables["api_calls"]
    threads, times = plain(table["thread"]), plain(table["time"])
    launched = plain(recording.tables["activities"]["correlation"])[found.activity]
    launching = calls_of(recording.tables, launched)
    # The data loader works and waits: to the program both are one.
    merged: dict[tuple[str, str], Work] = {}
    for work in found.works:
        before = merged.setdefault((work.site, work.text), work)
        if before.is_of_launches and not work.is_of_launches:
            merged[work.site, work.text] = work
    works, place_of = list(merged.values()), {key: place for place, key in enumerate(merged)}
    of_work = np.array([place_of[work.site, work.text] for work in found.works], np.int64)
    totals = np.zeros((len(calls), len(works)), np.int64)
    for thread in np.unique(threads[calls]).tolist():
        own = np.flatnonzero(threads[calls] == thread)
        own = own[np.argsort(times[calls[own]], kind="stable")]
        pieces = np.flatnonzero((threads[launching] == thread) & ~found.is_beside_launches)
        ends = times[calls[own]]
        gap, piece, begin, end = overlaps(
            ends - gaps.length[calls[own]], ends, found.begin[pieces], found.end[pieces]
        )
        np.add.at(totals, (own[gap], of_work[found.work[pieces[piece]]]), end - begin)
    sampled = [
        _Sampled(work, calls, totals[:, number], _is_most(totals, number))
        for number, work in enumerate(works)
        if not (work.kind in PREPARATIONS or not work.site or work.is_of_gpuviz)
        and not is_compilation(recording, work.stack)
    ]
    runs = _Runs(recording)
    known = [(each, _place_of_work(recording, each)) for each in sampled]
    known = [
        (each, place)
        for each, place in known
        if not (_is_of_launches(place) or runs.are_stalls(each.work, place.calls))
    ]
    works_of_gaps, places = [each for each, _ in known], [place for _, place in known]
    together = [
        number
        for number, place in enumerate(places)
        if len(place.calls) and not place.is_upload and place.is_plain
    ]
    together = sorted(together, key=lambda number: -places[number].idle_ns)[:_MOST_JOINED]
    grouped = _joined(recording, gaps, [works_of_gaps[number] for number in together])
    apart = [place for number, place in enumerate(places) if number not in together]
    return sorted([*apart, *grouped], key=lambda place: -place.idle_ns)[:_MOST_PLACES]


@dataclass(frozen=True, slots=True)
class _Sampled:
    """How long something was sampled in each gap, which the call after it stands for."""

    work: Work
    calls: "NDArray[Any]"
    sampled: "NDArray[Any]"
    is_most: "NDArray[Any]"

    def chosen(self) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return the calls after the gaps that it takes much of, and how long it takes there."""
        is_long = (self.sampled >= LONG_NS) | (self.is_most & (self.sampled > 0))
        return _without_first(self.calls[is_long], self.sampled[is_long])


def _is_most(totals: "NDArray[Any]", number: int) -> "NDArray[Any]":
    is_most: NDArray[Any] = totals.argmax(axis=1) == number
    return is_most


def _without_first(
    calls: "NDArray[Any]", sampled: "NDArray[Any]"
) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return gaps without the first if that is much longer than all later ones."""
    if len(calls) and sampled[0] > _MOST_OF_FIRST * sampled[1:].max(initial=0):
        return calls[1:], sampled[1:]
    return calls, sampled


def _place_of_work(recording: "RecordingData", found: _Sampled) -> _Place:
    work = found.work
    calls, sampled = found.chosen()
    line, stacks = Line(work.site, work.source, "", work.stack), (work.stack, work.stack)
    return _Place(
        line,
        line,
        stacks,
        calls,
        idle_ns=int(sampled.sum()),
        host_ns=sampled,
        is_upload=not work.is_wait and is_staging(recording, stacks, calls, sampled),
        work=work,
        makes_modules=makes_modules(recording.call_stacks.frames(work.stack)),
    )


class _Runs:
    """The runs of lines of the program that make calls.

    Args:
        recording: The recording.
    """

    def __init__(self, recording: "RecordingData") -> None:
        self._calls = recording.tables["api_calls"]
        self._recording = recording

    def are_stalls(self, work: Work, calls: "NDArray[Any]") -> bool:
        """Return whether gaps in which a line or a library works are in few runs of their lines.

        What a library does in each run is the program's work; what it does in a few, as where cuDNN
        tries kernels for arguments of a new shape, prepares the others. A line that launches the
        next work itself, and mostly without a gap, has no such work either: its thread did not run.

        Args:
            work: What was sampled in the gaps.
            calls: The calls after the gaps, of which a tenth of the runs are not few.
        """
        lines, run = self._of_calls
        if not work.is_of_launches and (lines[calls] != self._line_of(work.stack)).any():
            return False
        of_lines = np.isin(lines, lines[calls])
        every, some = (len(np.unique(run[rows])) for rows in (of_lines, calls))
        return some < _LEAST_OF_ROUNDS * every

    def _line_of(self, stack: int) -> int:
        """Return the number of the line of a call stack; -1 of one without calls."""
        lines, _ = self._of_calls
        own = user_frames(self._recording.tables, plain(self._calls["stack"]))
        line = user_frames(self._recording.tables, np.array([stack]))[0]
        calls = np.flatnonzero(own == line)
        return int(lines[calls[0]]) if len(calls) else -1

    @cached_property
    def _of_calls(self) -> "tuple[NDArray[Any], NDArray[Any]]":
        """The line of each call, and the number of the run of that line."""
        time, thread = (plain(self._calls[name]) for name in ("time", "thread"))
        lines = CallSites(self._recording, plain(self._calls["stack"])).numbers("line")
        order = np.lexsort((time, thread))
        changes = (np.diff(lines[order]) != 0) | (np.diff(thread[order].astype(np.int64)) != 0)
        run = np.empty(len(order), np.int64)
        run[order] = np.cumsum(np.append(True, changes)[: len(order)])
        return lines, run


def _is_of_launches(place: _Place) -> bool:
    """Return whether a library takes this time for its own launches, and not for the program."""
    is_of_launches = place.work is not None and place.work.is_of_launches and not place.is_upload
    return is_of_launches and place.host_ns.sum() < _LEAST_OF_LIBRARY_NS * len(place.host_ns)


def _joined(
    recording: "RecordingData", gaps: HostGaps, works: list[_Sampled]
) -> "Iterator[_Place]":
    """Yield the places of lines that run in the same gaps, or in one call of the program."""
    around = _stacks_around(recording, gaps)
    chosen = [each.chosen()[0] for each in works]
    groups = work_groups(
        recording,
        [each.work.stack for each in works],
        chosen,
        [[around(call) for call in calls.tolist()] for calls in chosen],
    )
    for group in groups:
        members = [works[number] for number in group.members]
        if len(members) == 1:
            yield _place_of_work(recording, members[0])
            continue
        calls = members[0].calls
        total = np.sum([each.sampled for each in members], axis=0)
        is_long = np.isin(calls, np.concatenate([chosen[number] for number in group.members]))
        calls, sampled = _without_first(calls[is_long], total[is_long])
        members.sort(key=lambda each: -int(each.sampled[is_long].sum()))
        lines = _lines_of(members, is_long)
        call = group.call
        first = lines[0] if call is None else Line(call.site, call.source, "", lines[0].stack)
        yield _Place(
            first,
            first,
            (first.stack, first.stack),
            calls,
            idle_ns=int(sampled.sum()),
            host_ns=sampled,
            is_upload=False,
            work=members[0].work,
            lines=lines,
            is_call=call is not None,
            makes_modules=makes_modules(recording.call_stacks.frames(members[0].work.stack)),
        )


def _lines_of(members: list[_Sampled], is_long: "NDArray[Any]") -> tuple[Line, ...]:
    """Return the lines that were sampled, with their times, longest first."""
    sums: dict[str, int] = {}
    of_site: dict[str, Work] = {}
    for each in members:
        site = each.work.site
        sums[site] = sums.get(site, 0) + int(each.sampled[is_long].sum())
        of_site.setdefault(site, each.work)
    return tuple(
        Line(site, of_site[site].source, format_duration(time_ns), of_site[site].stack)
        for site, time_ns in sorted(sums.items(), key=lambda each: -each[1])
    )


def _stacks_around(
    recording: "RecordingData", gaps: HostGaps
) -> "Callable[[int], tuple[int, int]]":
    """Return a function for the call stacks before and after a gap.

    They are those of the thread that launches then, or of the one that hands it its work.
    """
    table, handing = recording.tables["api_calls"], handing_threads(recording)
    times, threads, stacks = (plain(table[name]) for name in ("time", "thread", "stack"))
    calls_of_thread = {
        each: (rows := np.flatnonzero(threads == each))[np.argsort(times[rows], kind="stable")]
        for each in set(handing.values())
    }

    def around(call: int) -> tuple[int, int]:
        own = calls_of_thread.get(handing.get(int(threads[call]), -1))
        if own is None:
            return int(stacks[gaps.previous[call]]), int(stacks[call])
        place = int(np.searchsorted(times[own], times[call]))
        before, after = max(place - 1, 0), min(place, len(own) - 1)
        return int(stacks[own[before]]), int(stacks[own[after]])

    return around


def _share_of_rounds(recording: "RecordingData", gaps: HostGaps) -> "NDArray[Any]":
    """Return how many of the gaps before the same step of the program are long, for each call.

    A step is given by what this call and the one before do, and by their call stacks. What the host
    does in a program, it does in the same step again; a pause of Python, of another thread or of
    another program occurs in any of them.
    """
    tables = recording.tables
    table, activities = tables["api_calls"], tables["activities"]
    rows = first_rows(plain(activities["correlation"]), plain(table["correlation"]))
    names = plain(table["name"]).astype(np.int64)
    # Kernels and calls are numbered apart.
    launched = np.append(plain(activities["name"]).astype(np.int64), 0)[rows]
    work = np.where(rows >= 0, 2 * launched + 1, 2 * names)
    calls, _ = numbered(work, plain(table["stack"]))
    step, _ = numbered(calls, calls[gaps.previous])
    count = np.bincount(step)
    share: NDArray[Any] = (np.bincount(step, gaps.length >= LONG_NS) / count)[step]
    return share


def _longest_parts(
    recording: "RecordingData", gaps: HostGaps, calls: "NDArray[Any]"
) -> "NDArray[Any]":
    """Return the call stacks before and after the longest part of each gap.

    Allocations of the thread divide a gap; a free may be of a function that has returned.
    """
    table, events = recording.tables["api_calls"], recording.tables["memory_events"]
    stacks, threads = plain(table["stack"]), plain(table["thread"])
    end = plain(table["time"])[calls]
    begin = end - gaps.length[calls]
    pairs = np.stack([stacks[gaps.previous[calls]], stacks[calls]], axis=1)
    is_allocation = codes(events["action"], ACTIONS) == ACTIONS.index("alloc")
    times, of_thread, known = (plain(events[name]) for name in ("time", "thread", "stack"))
    for thread in np.unique(threads[calls]).tolist():
        of_gaps = np.flatnonzero(threads[calls] == thread)
        rows = np.flatnonzero(is_allocation & (of_thread == thread) & (known != 0))
        rows = rows[np.argsort(times[rows], kind="stable")]
        low = np.searchsorted(times[rows], begin[of_gaps])
        high = np.searchsorted(times[rows], end[of_gaps])
        for gap, first, last in zip(
            of_gaps[low < high], low[low < high], high[low < high], strict=True
        ):
            inside = rows[first:last]
            edges = np.concatenate([[begin[gap]], times[inside], [end[gap]]])
            sites = np.concatenate([pairs[gap, :1], known[inside], pairs[gap, 1:]])
            longest = int(np.argmax(np.diff(edges)))
            pairs[gap] = sites[longest : longest + 2]
    return pairs


def _finding(
    recording: "RecordingData",
    schedule: Schedule,
    gaps: HostGaps,
    place: _Place,
    device: int,
) -> Finding:
    shorter = np.zeros(len(gaps.length), np.int64)
    shorter[place.calls] = place.host_ns
    host_ns = int(place.host_ns.sum())
    change = ScheduleChange(shorter_gap=shorter, at_most_ns=host_ns)
    times = plain(recording.tables["api_calls"]["time"])[place.calls]
    is_of_warm_up = int(times.max()) <= steady_of(recording, device).from_ns
    whole = schedule.covered_ns if is_of_warm_up else schedule.working_ns
    idle = format_duration(place.idle_ns)
    rows = _idle_rows(recording, device, times - gaps.length[place.calls], times)
    return Finding(
        rule="R43",
        title=(
            f"The GPU is idle for {idle}, "
            f"{format_share(min(place.idle_ns / max(whole, 1), 1))} of the time, while the "
            f"host {place.text}."
        ),
        reason=(
            f"{format_counted(len(place.calls), 'time', 'times')} the host spends "
            f"{format_duration(host_ns // len(place.calls))} on average between two CUDA calls "
            f"there, {format_duration(host_ns)} in total, and has launched nothing that the GPU "
            "could do meanwhile."
        ),
        change=f"{place.advice} The saving is that of work that takes no time.",
        certainty="possible",
        device=device,
        saved_ns=schedule.saved_alone(change),
        schedule=change,
        lines=_lines(place, idle),
        evidence=Evidence(
            "idle_gaps", rows, (int((times - gaps.length[place.calls]).min()), int(times.max()))
        ),
    )


def _lines(place: _Place, idle: str) -> tuple[Line, ...]:
    if place.lines:
        call = (Line(place.first.site, place.first.source, idle, place.stacks[0]),)
        is_one = len(place.lines) == 1
        return call if is_one else (call if place.is_call else ()) + place.lines[:_MOST_LINES]
    ends = (place.first,) if place.first == place.last else (place.first, place.last)
    return tuple(
        Line(each.site, each.source, idle, stack)
        for each, stack in zip(ends, place.stacks, strict=False)
    )


def _idle_rows(
    recording: "RecordingData", device: int, begin: "NDArray[Any]", end: "NDArray[Any]"
) -> tuple[int, ...]:
    """Return the longest idle gaps of a device within some times."""
    table = derived(recording)["idle_gaps"]
    of_device = (plain(table["device"]) == device) & (plain(table["stream"]) == 0)
    rows = np.flatnonzero(of_device)
    inside = Intervals(begin, end).within(plain(table["time"])[rows], plain(table["end"])[rows])
    longest = rows[np.argsort(-inside, kind="stable")[:_MOST_ROWS]]
    longest = longest[np.sort(-inside, kind="stable")[:_MOST_ROWS] < 0]
    return tuple(np.sort(longest).tolist())
