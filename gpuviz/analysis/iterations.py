"""The iterations of a program's main loop, and what each of them cost."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import (
    calls_of,
    durations,
    phases_of,
    stacks_of,
    text_numbers,
    user_frames,
    within,
)
from gpuviz.analysis.levels import memory_levels
from gpuviz.analysis.periods import Repeats, further_elements, repeats, repeats_around
from gpuviz.analysis.seen_part import seen_part
from gpuviz.analysis.xla import runs_of_xla
from gpuviz.data.codes import PHASES
from gpuviz.data.columns import codes, plain
from gpuviz.data.conclusions import schemas
from gpuviz.data.first_rows import first_rows
from gpuviz.data.once import Once
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData

FEWEST = 3
# Of the launches or of the time, what the iterations have at least.
_LEAST_SHARE = 0.5
# How many times as long as the median iteration a regular one takes.
_MOST_REGULAR = 1.5
# As many iterations, with the first, tell whether it begins the regular ones.
_FOLLOWING = 5
# What PyTorch calls the range of an optimizer's step, before the optimizer's name.
_OPTIMIZER_STEP = "Optimizer.step#"
_KINDS = DICTIONARIES["activities", "kind"]
_RANGE_KINDS = DICTIONARIES["ranges", "kind"]


@dataclass(frozen=True, slots=True)
class _Found:
    """Iterations: when they ran, and when the host was in them.

    Both differ if the host launches far ahead of the GPU.
    """

    name: str
    start: "NDArray[Any]"
    end: "NDArray[Any]"
    host_start: "NDArray[Any]"
    host_end: "NDArray[Any]"

    def within(self, first: int, last: int) -> "_Found":
        """Return the iterations that begin and end in a window."""
        inside = (self.start >= first) & (self.end <= last)
        times = (self.start, self.end, self.host_start, self.host_end)
        return _Found(self.name, *(each[inside] for each in times))


def median_iteration(iterations: "pa.Table") -> dict[str, Any]:
    """Return the iteration of the median duration, of an even number the shorter one.

    Args:
        iterations: `gpuviz.Recording.iterations`, with at least one row.
    """
    rows = sorted(iterations.to_pylist(), key=lambda row: (row["duration_ns"], row["number"]))
    middle: dict[str, Any] = rows[(len(rows) - 1) // 2]
    return middle


def iterations(recording: "RecordingData", device: int) -> "pa.Table":
    """Return one row for each iteration of the program's main loop; no rows if none is found.

    Iterations are the ranges of one name (``gpuviz.range`` or NVTX) that ran at least three times
    in one thread, one after the other; of several names, that with the most time. Without such
    ranges they are the steps of a training program, each until an optimizer of PyTorch has run: of
    several lines that run one, that which does so most often, of those the last. Of a snapshot of
    PyTorch they are the times between the ends of an optimizer's steps. Otherwise they are found by
    the order of the user's lines that launched kernels, copies and memsets: at least two lines that
    repeat at least three times, with eight launches or more. More than half of the repetitions must
    be equal, and all together differ by at most 5 % of their launches, or 20 % if at least 85 % are
    equal, as when every tenth step logs. Of three lines or more that take turns, each may launch
    any number of times in a row. Where the user's lines have no such order, it is that of call
    stacks, as in a loop of a library, or of kernels, in what XLA made of a function. If several
    threads run the same loop, iterations
    are those of the one that launches most. An iteration ends where the next one begins; the last
    one ends with its last launch or the work of it. If the GPU has work left when the host begins
    an iteration, it begins when the GPU does. Of nested loops this is the inner one if launches
    outside it are that few, else the outer one. It is also the outer one if all of these launches
    are in lines that are less indented, as those beside the loop over the layers of a model, unless
    that has fewer rounds than the inner one has in each of them, as epochs do. In all cases,
    iterations have at least half of the launches or of the recorded time.

    Columns: ``number`` (from 1); ``name`` of the range, empty without one; ``start``, ``end``,
    ``duration_ns``; in this time, ``peak_bytes`` (most bytes allocated), ``busy_ns`` (in which an
    activity ran) and ``wait_ns`` (in which the host was blocked, summed over threads, also by other
    devices); and what the host launched in the iteration, also if it ran later: ``kernel_ns``,
    ``kernel_count`` (kernels and graphs, concurrent ones counted separately), ``copy_ns``,
    ``copy_bytes`` (without memsets); of ``kernel_ns``, ``forward_ns``, ``backward_ns`` and
    ``optimizer_ns`` in these parts of a training step. A window of a recording has the iterations
    that are found in it and begin and end in it; if streams were recorded in windows, they are
    those of the longest one.

    Args:
        recording: The recording.
        device: Ordinal.
    """
    schema = pa.schema([field for field in schemas()["iterations"] if field.name != "device"])
    found = _found(recording)
    if found is None or not len(found.start):
        return schema.empty_table()
    launches = _Launches(seen_part(recording))
    columns = {
        "number": range(1, len(found.start) + 1),
        "name": [found.name] * len(found.start),
        "start": found.start,
        "end": found.end,
        "duration_ns": found.end - found.start,
        "peak_bytes": _peaks(recording, device, found),
        "busy_ns": _busy(recording, device, found),
        "wait_ns": _waits(recording, device, found),
    } | launches.totals(found, device)
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def host_spans(recording: "RecordingData") -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return when the host made the first launch of each iteration, and returned from the last.

    Of ranges, they are the begins and ends. Both are in ns and ascending; none if no iterations are
    found.
    """
    found = _found(recording)
    none = np.zeros(0, np.int64)
    return (none, none) if found is None else (found.host_start, found.host_end)


def regular_from(recording: "RecordingData") -> int | None:
    """Return when the first iteration began that took about as long as the others, in ns.

    Most of the few that follow take about as long as well: a short one may precede long ones. None
    if no iterations are found, or if the longer ones are not only at the beginning.
    """
    found = _found(recording)
    if found is None or not len(found.start):
        return None
    length = found.end - found.start
    is_regular = length <= _MOST_REGULAR * np.median(length)
    before = np.append(0, np.cumsum(is_regular))
    last = np.minimum(np.arange(len(length)) + _FOLLOWING, len(length))
    share = (before[last] - before[:-1]) / (last - np.arange(len(length)))
    begins = np.flatnonzero(is_regular & (share >= 1 / 2))
    if not len(begins) or begins[0] > len(length) // 2:
        return None
    return int(found.start[begins[0]])


def peak_and_busy(
    recording: "RecordingData", device: int, start: "NDArray[Any]", end: "NDArray[Any]"
) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return the most bytes allocated and the busy time in spans of a recording, in order."""
    spans = _Found("", start, end, start, end)
    return _peaks(recording, device, spans), _busy(recording, device, spans)


def busy_before(recording: "RecordingData", device: int, end_ns: int) -> int:
    """Return for how long any activity ran on a device before a time, in ns."""
    begins = plain(recording.tables["activities"]["time"])
    first = min(int(begins.min(initial=end_ns)), end_ns)
    if recording.bounds is not None:
        first = max(first, recording.bounds[0])
    if first >= end_ns:
        return 0
    edges = np.array([first]), np.array([end_ns])
    return int(_busy(recording, device, _Found("", *edges, *edges))[0])


@Once
def _found(recording: "RecordingData") -> _Found | None:
    part = seen_part(recording)
    if part is not recording:
        return _found(part)
    launches = _Launches(recording)
    found = (
        _ranges(recording, launches)
        or _steps(recording, launches)
        or _steps_of_memory(recording, launches)
        or _periods(recording, launches.of_one_worker())
    )
    if found is not None and recording.bounds is not None:
        found = found.within(*recording.bounds)
    return found


@Once
def _indented_frames(recording: "RecordingData") -> dict[int, tuple[tuple[str, str], int]]:
    """Return the function and the indentation of each frame whose source is known, by id."""
    names = ("id", "name", "filename", "line", "context", "context_line")
    columns = [recording.tables["frames"][name].to_pylist() for name in names]
    found = {}
    for number, name, filename, line, context, first in zip(*columns, strict=True):
        lines = context.split("\n")
        if context and 0 <= line - first < len(lines):
            text = lines[line - first]
            found[number] = ((name, filename), len(text) - len(text.lstrip()))
    return found


class _Launches:
    """The activities of a recording whose launch calls are known, in the order of the calls."""

    def __init__(self, recording: "RecordingData", thread: int | None = None) -> None:
        tables = recording.tables
        activities = tables["activities"]
        calls = calls_of(tables, plain(activities["correlation"]))
        kinds = codes(activities["kind"], _KINDS)
        rows = np.flatnonzero((calls >= 0) & (kinds != _KINDS.index("range")))
        called = plain(tables["api_calls"]["time"])[calls[rows]]
        if recording.bounds is not None:
            first, last = recording.bounds
            inside = (called >= first) & (called <= last)
            rows, called = rows[inside], called[inside]
        if thread is not None:
            own = plain(tables["api_calls"]["thread"])[calls[rows]] == thread
            rows, called = rows[own], called[own]
        rows = rows[np.argsort(called, kind="stable")]
        self._recording = recording
        self._rows = rows
        self._calls = calls[rows]
        self.called = plain(tables["api_calls"]["time"])[self._calls]
        self.returned = np.maximum(plain(tables["api_calls"]["end"])[self._calls], self.called + 1)
        self.kinds = kinds[rows]

    def ends(self) -> "NDArray[Any]":
        """Return when each launch and its work have ended."""
        ended: NDArray[Any] = np.maximum(
            self.returned, plain(self._recording.tables["activities"]["end"])[self._rows]
        )
        return ended

    def starts(self) -> "NDArray[Any]":
        """Return when the work of each launch began, not before that of an earlier launch."""
        began = plain(self._recording.tables["activities"]["time"])[self._rows]
        started: NDArray[Any] = np.maximum.accumulate(np.maximum(began, self.called))
        return started

    def of_one_worker(self) -> "_Launches":
        """Return those of one thread, if several threads run the same loop; else all."""
        threads = plain(self._recording.tables["api_calls"]["thread"])[self._calls]
        known, of_launch = np.unique(threads, return_inverse=True)
        if len(known) == 1 or not len(threads):
            return self
        sites = self.sites()
        counts = np.zeros((int(sites.max()) + 1, len(known)), np.int64)
        np.add.at(counts, (sites, of_launch.reshape(-1)), 1)
        first, second = np.sort(counts, axis=1)[:, ::-1][:, :2].T
        is_shared = (second >= FEWEST) & (second > _LEAST_SHARE * first)
        if counts[is_shared].sum() <= _LEAST_SHARE * len(threads):
            return self
        return _Launches(self._recording, int(known[counts.sum(axis=0).argmax()]))

    def indentation(self, inner: int, outer: int) -> tuple[int, int] | None:
        """Return the indentation, in characters, of two launches' lines where their calls part.

        None if that is unknown, or not in one function.
        """
        frames = _indented_frames(self._recording)
        stacks = self._recording.tables["stacks"]
        ids = stacks_of(self._recording.tables, self._calls[[inner, outer]])
        rows = first_rows(plain(stacks["id"]), ids)
        if (rows < 0).any():
            return None
        calls = (reversed(stacks["frames"][row].as_py()) for row in rows.tolist())
        for one, other in zip(*calls, strict=False):
            if one == other:
                continue
            left, right = frames.get(one), frames.get(other)
            if left is None or right is None or left[0] != right[0]:
                return None
            return left[1], right[1]
        return None

    def lines(self) -> "NDArray[Any]":
        """Return the id in ``frames`` of the user's line of each launch; 0 if unknown."""
        tables = self._recording.tables
        return user_frames(tables, stacks_of(tables, self._calls))

    def phases(self) -> "NDArray[Any]":
        """Return the position in ``PHASES`` of the part of a training step of each launch."""
        tables = self._recording.tables
        return phases_of(tables, stacks_of(tables, self._calls))

    def sites(self) -> "NDArray[Any]":
        """Return a number for each launch, equal for kernels, or copies, of the same line.

        Names do not matter: libraries compile one kernel for each size of an array.
        """
        numbers: NDArray[Any] = numbered(self.lines() * len(_KINDS) + self.kinds)[0]
        return numbers

    def stacks(self) -> "NDArray[Any]":
        """Return a number for each launch, equal for kernels, or copies, of the same call stack."""
        return numbered(stacks_of(self._recording.tables, self._calls), self.kinds)[0]

    def kernels(self) -> "NDArray[Any]":
        """Return a number for each launch, equal for those of the same name and call stack."""
        names = plain(self._recording.tables["activities"]["name"])[self._rows]
        return numbered(self.stacks(), names)[0]

    def totals(self, found: _Found, device: int) -> "dict[str, NDArray[Any]]":
        """Return what a device did for the launches in each iteration."""
        activities = self._recording.tables["activities"]
        at = np.searchsorted(found.host_start, self.called, side="right") - 1
        inside = (at >= 0) & (self.called < found.host_end[at])
        inside &= plain(activities["device"])[self._rows] == device
        copies = self.kinds == _KINDS.index("memcpy")
        kernels = np.isin(self.kinds, [_KINDS.index(kind) for kind in ("kernel", "graph")])
        lengths = durations(activities)[self._rows]
        sizes = plain(activities["bytes"])[self._rows]
        of_phase = self.phases()

        def sums(chosen: "NDArray[Any]", values: "NDArray[Any]") -> "NDArray[Any]":
            total = np.zeros(len(found.start), np.int64)
            np.add.at(total, at[chosen], values[chosen])
            return total

        return {
            "kernel_ns": sums(inside & kernels, lengths),
            "kernel_count": sums(inside & kernels, np.ones(len(at), np.int64)),
            "copy_ns": sums(inside & copies, lengths),
            "copy_bytes": sums(inside & copies, sizes),
        } | {
            f"{name}_ns": sums(inside & kernels & (of_phase == PHASES.index(name)), lengths)
            for name in filter(None, PHASES)
        }


def _ranges(recording: "RecordingData", launches: _Launches) -> _Found | None:
    """Return the ranges of the name with the most time, of those that repeat; None without one."""
    table = recording.tables["ranges"]
    starts, ends = plain(table["time"]), plain(table["end"])
    kinds = codes(table["kind"], _RANGE_KINDS)
    is_whole = np.isin(kinds, [_RANGE_KINDS.index(each) for each in ("range", "nvtx")])
    is_whole &= ends >= starts
    names = text_numbers(recording.tables, plain(table["name"]))
    threads = plain(table["thread"]).astype(np.int64)
    best: NDArray[Any] | None = None
    longest = 0
    rows = np.flatnonzero(is_whole)
    for name, thread in sorted({*zip(names[rows].tolist(), threads[rows].tolist(), strict=True)}):
        own = rows[(names[rows] == name) & (threads[rows] == thread)]
        own = own[np.argsort(starts[own], kind="stable")]
        if len(own) < FEWEST or (starts[own][1:] < ends[own][:-1]).any():
            continue
        total = int((ends[own] - starts[own]).sum())
        if total > longest and _is_much(recording, launches, starts[own], ends[own]):
            best, longest = own, total
    if best is None:
        return None
    (text,) = texts(recording.tables, plain(table["name"])[best[:1]])
    return _Found(text, starts[best], ends[best], starts[best], ends[best])


def _steps(recording: "RecordingData", launches: _Launches) -> _Found | None:
    """Return the steps of a training program, each until an optimizer's step; None without them.

    Of several lines that run an optimizer, it is the one that does so most often, of those the
    last one.
    """
    in_step = launches.phases() == PHASES.index("optimizer")
    runs = np.flatnonzero(in_step & ~np.append(False, in_step[:-1]))
    if len(runs) < FEWEST:
        return None
    lines = launches.lines()[runs]
    distinct, first, counts = np.unique(lines, return_index=True, return_counts=True)
    chosen = distinct[np.lexsort((first, counts))[-1]]
    begins = runs[lines == chosen]
    # The launch after each run.
    others = np.append(np.flatnonzero(~in_step), len(in_step))
    ends = others[np.searchsorted(others, begins)]
    forward = np.flatnonzero(launches.phases() == PHASES.index("forward"))
    if len(begins) < FEWEST or not forward.size or forward[0] > begins[0]:
        return None
    return _repeated(recording, launches, np.append(forward[0], ends[:-1]), int(ends[-1]))


def _steps_of_memory(recording: "RecordingData", launches: _Launches) -> _Found | None:
    """Return the steps of a training program of which only memory is known; None without them.

    PyTorch's snapshots have the steps of optimizers as ranges. An iteration is the time from the
    end of one to the end of the next; when the first one began is unknown.
    """
    table, events = recording.tables["ranges"], recording.tables["memory_events"]
    if len(launches.called) or not table.num_rows:
        return None
    names, ends = plain(table["name"]), plain(table["end"])
    distinct = np.unique(names)
    is_step = [text.startswith(_OPTIMIZER_STEP) for text in texts(recording.tables, distinct)]
    rows = np.flatnonzero(np.isin(names, distinct[is_step]) & (ends >= plain(table["time"])))
    if not rows.size:
        return None
    # Of several optimizers, the one that steps most often, of those the last one.
    steps, at, counts = np.unique(names[rows][::-1], return_index=True, return_counts=True)
    chosen = steps[np.lexsort((-at, counts))[-1]]
    ended = np.sort(ends[rows[names[rows] == chosen]])
    first, after = np.searchsorted(plain(events["time"]), ended[[0, -1]])
    if len(ended) <= FEWEST or after - first <= _LEAST_SHARE * events.num_rows:
        return None
    return _Found("", ended[:-1], ended[1:], ended[:-1], ended[1:])


def _periods(recording: "RecordingData", launches: _Launches) -> _Found | None:
    """Return the iterations in the order of the launches; None if there is no clear period."""
    lines = launches.lines()
    # A line may repeat kernels and copies within itself, as each layer of a model does.
    for elements in (launches.sites(), numbered(lines)[0]):
        found = repeats(elements, fewest=FEWEST)
        if found is not None and _is_of_lines(lines[_usual(found)]):
            found = _loop_around(launches, elements, found) or found
            return _repeated(recording, launches, found.starts, found.end)
    # The loop may be in a library that one line calls, or run what XLA made of a function.
    elements = launches.kernels() if runs_of_xla(recording).size else launches.stacks()
    found = repeats(elements, fewest=FEWEST)
    if found is None or found.length == 1 or not lines[_usual(found)].all():
        return None
    return _repeated(recording, launches, found.starts, found.end)


def _loop_around(launches: _Launches, elements: "NDArray[Any]", inner: Repeats) -> Repeats | None:
    """Return the loop that runs another one in each round, as a model runs its layers.

    What is launched outside the inner loop is less indented than what is launched in it, which is
    not so for what a step does now and then. Of a loop that has fewer rounds than the inner one in
    each of them, such as epochs, the inner one is shown.
    """
    outer = repeats_around(elements, inner, fewest=FEWEST)
    if outer is None or len(outer.starts) ** 2 < len(inner.starts):
        return None
    further = further_elements(elements, inner)
    _, first = np.unique(elements[further], return_index=True)
    start = int(inner.starts[inner.usual])
    known = [launches.indentation(start, place) for place in further[first].tolist()]
    is_outside = all(each is not None and each[1] < each[0] for each in known)
    return outer if is_outside else None


def _is_of_lines(lines: "NDArray[Any]") -> bool:
    """Return whether launches are of at least two lines, all known."""
    return bool(lines.all()) and len(np.unique(lines)) >= 2  # noqa: PLR2004 - one line is no loop


def _repeated(
    recording: "RecordingData", launches: _Launches, starts: "NDArray[Any]", end: int
) -> _Found | None:
    """Return the iterations of repeated launches; None if they are little of the recording.

    Args:
        recording: The recording.
        launches: Its launches.
        starts: The first launch of each iteration.
        end: The launch after the last one.
    """
    host = launches.called[starts]
    last = np.append(starts[1:], end) - 1
    host_end = launches.returned[last]
    ends = launches.ends()
    done = ends[starts[-1] : end].max()
    if not _is_much(recording, launches, host, np.append(host[1:], done)):
        return None
    # When the work of all launches before had ended.
    free = np.append(0, np.maximum.accumulate(ends))[starts]
    start = np.where(free > host, launches.starts()[starts], host)
    return _Found("", start, np.append(start[1:], done), host, host_end)


def _usual(found: Repeats) -> slice:
    start = int(found.starts[found.usual])
    return slice(start, start + found.length)


def _is_much(
    recording: "RecordingData", launches: _Launches, starts: "NDArray[Any]", ends: "NDArray[Any]"
) -> bool:
    """Return whether spans, in order, have half of the launches or of the recorded time."""
    times = np.searchsorted(launches.called, np.stack([starts, ends]))
    launched = int((times[1] - times[0]).sum())
    lasted = int((ends - starts).sum())
    return bool(
        launched > _LEAST_SHARE * len(launches.called)
        or lasted > _LEAST_SHARE * recording.covered_ns
    )


def _peaks(recording: "RecordingData", device: int, found: _Found) -> "NDArray[Any]":
    """Return the most bytes allocated in each iteration."""
    levels = memory_levels(recording)
    rows = np.flatnonzero(plain(levels["device"]) == device)
    times, bytes_at = plain(levels["time"])[rows], plain(levels["allocated"])[rows]
    if not rows.size:
        return np.zeros(len(found.start), np.int64)
    first = np.maximum(np.searchsorted(times, found.start, side="right") - 1, 0)
    after = np.maximum(np.searchsorted(times, found.end, side="right"), first + 1)
    bounds = np.stack([first, after], axis=1).reshape(-1)
    peaks: NDArray[Any] = np.maximum.reduceat(np.append(bytes_at, 0), bounds)[::2]
    return peaks


def _busy(recording: "RecordingData", device: int, found: _Found) -> "NDArray[Any]":
    """Return the time of each iteration in which any activity ran on a device."""
    activities = recording.tables["activities"]
    is_work = codes(activities["kind"], _KINDS) != _KINDS.index("range")
    begin, end = within(activities, (int(found.start[0]), int(found.end[-1])))
    chosen = np.flatnonzero(is_work & (plain(activities["device"]) == device) & (begin < end))
    chosen = chosen[np.argsort(begin[chosen], kind="stable")]
    begin, end = begin[chosen], np.maximum.accumulate(end[chosen])
    # Of each activity, the part after all earlier ones.
    begin[1:] = np.minimum(np.maximum(begin[1:], end[:-1]), end[1:])
    return _time_in(begin, end, found)


def _waits(recording: "RecordingData", device: int, found: _Found) -> "NDArray[Any]":
    """Return how long the host was blocked in each iteration, by a device or an unknown one."""
    waits = derived(recording)["host_waits"]
    begin, end = within(waits, (int(found.start[0]), int(found.end[-1])))
    chosen = np.isin(plain(waits["device"]), [device, -1])
    return _time_in(begin[chosen], end[chosen], found)


def _time_in(begin: "NDArray[Any]", end: "NDArray[Any]", found: _Found) -> "NDArray[Any]":
    """Return the sum of the parts of spans in each iteration."""
    times = np.stack([found.start, found.end]) - found.start[0]
    until = np.zeros(times.shape, np.int64)
    for edges, sign in ((begin, 1), (end, -1)):
        ordered = np.sort(edges - found.start[0], kind="stable")
        sums = np.concatenate([[0], np.cumsum(ordered)])
        count = np.searchsorted(ordered, times, side="right")
        until += sign * (count * times - sums[count])
    lasted: NDArray[Any] = until[1] - until[0]
    return lasted
