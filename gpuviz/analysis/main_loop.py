"""The main loop of a program: when its iterations ran."""

from dataclasses import dataclass

import numpy as np

from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launch_sequence import LaunchSequence
from gpuviz.analysis.launches import text_numbers
from gpuviz.analysis.periods import Repeats, further_elements, repeats, repeats_around
from gpuviz.analysis.seen_part import seen_part
from gpuviz.analysis.xla import runs_of_xla
from gpuviz.data.codes import PHASES
from gpuviz.data.columns import codes, plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

_FEWEST = 3
# Of the launches or of the time, what the iterations have at least.
_LEAST_SHARE = 0.5
# How many times as long as the median iteration a regular one takes.
_MOST_REGULAR = 1.5
# As many iterations, with the first, tell whether it begins the regular ones.
_FOLLOWING = 5
# What PyTorch calls the range of an optimizer's step, before the optimizer's name.
_OPTIMIZER_STEP = "Optimizer.step#"
_RANGE_KINDS = DICTIONARIES["ranges", "kind"]


@dataclass(frozen=True, slots=True)
class MainLoop:
    """The iterations: when they ran, and when the host was in them.

    Both differ if the host launches far ahead of the GPU.
    """

    name: str
    start: np.ndarray
    end: np.ndarray
    host_start: np.ndarray
    host_end: np.ndarray

    def within(self, first: int, last: int) -> "MainLoop":
        """Return the iterations that begin and end in a window."""
        inside = (self.start >= first) & (self.end <= last)
        times = (self.start, self.end, self.host_start, self.host_end)
        return MainLoop(self.name, *(each[inside] for each in times))


@Once
def main_loop(recording: RecordingData) -> MainLoop | None:
    """Return the main loop of a program; None if there is none.

    `gpuviz.analysis.iterations.iterations` describes what is one.
    """
    part = seen_part(recording)
    if part is not recording:
        return main_loop(part)
    launches = LaunchSequence(recording)
    found = (
        _ranges(recording, launches)
        or _steps(recording, launches)
        or _steps_of_memory(recording, launches)
        or _periods(recording, _of_one_worker(recording, launches))
    )
    if found is not None and recording.bounds is not None:
        found = found.within(*recording.bounds)
    return found


def host_spans(recording: RecordingData) -> tuple[np.ndarray, np.ndarray]:
    """Return when the host made the first launch of each iteration, and returned from the last.

    Of ranges, they are the begins and ends. Both are in ns and ascending; none if no iterations are
    found.
    """
    found = main_loop(recording)
    none = np.zeros(0, np.int64)
    return (none, none) if found is None else (found.host_start, found.host_end)


def regular_from(recording: RecordingData) -> int | None:
    """Return when the first iteration began that took about as long as the others, in ns.

    Most of the few that follow take about as long as well: a short one may precede long ones. None
    if no iterations are found, or if the longer ones are not only at the beginning.
    """
    found = main_loop(recording)
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


def _ranges(recording: RecordingData, launches: LaunchSequence) -> MainLoop | None:
    """Return the ranges of the name with the most time, of those that repeat; None without one."""
    table = recording.tables["ranges"]
    starts, ends = plain(table["time"]), plain(table["end"])
    kinds = codes(table["kind"], _RANGE_KINDS)
    is_whole = np.isin(kinds, [_RANGE_KINDS.index(each) for each in ("range", "nvtx")])
    is_whole &= ends >= starts
    names = text_numbers(recording.tables, plain(table["name"]))
    threads = plain(table["thread"]).astype(np.int64)
    best: np.ndarray | None = None
    longest = 0
    rows = np.flatnonzero(is_whole)
    for name, thread in sorted({*zip(names[rows].tolist(), threads[rows].tolist(), strict=True)}):
        own = rows[(names[rows] == name) & (threads[rows] == thread)]
        own = own[np.argsort(starts[own], kind="stable")]
        if len(own) < _FEWEST or (starts[own][1:] < ends[own][:-1]).any():
            continue
        total = int((ends[own] - starts[own]).sum())
        if total > longest and _is_much(recording, launches, starts[own], ends[own]):
            best, longest = own, total
    if best is None:
        return None
    (text,) = texts(recording.tables, plain(table["name"])[best[:1]])
    return MainLoop(text, starts[best], ends[best], starts[best], ends[best])


def _steps(recording: RecordingData, launches: LaunchSequence) -> MainLoop | None:
    """Return the steps of a training program, each until an optimizer's step; None without them.

    Of several lines that run an optimizer, it is the one that does so most often, of those the
    last one.
    """
    in_step = launches.phases() == PHASES.index("optimizer")
    runs = np.flatnonzero(in_step & ~np.append(False, in_step[:-1]))
    if len(runs) < _FEWEST:
        return None
    lines = launches.lines()[runs]
    distinct, first, counts = np.unique(lines, return_index=True, return_counts=True)
    chosen = distinct[np.lexsort((first, counts))[-1]]
    begins = runs[lines == chosen]
    # The launch after each run.
    others = np.append(np.flatnonzero(~in_step), len(in_step))
    ends = others[np.searchsorted(others, begins)]
    forward = np.flatnonzero(launches.phases() == PHASES.index("forward"))
    if len(begins) < _FEWEST or not forward.size or forward[0] > begins[0]:
        return None
    return _repeated(recording, launches, np.append(forward[0], ends[:-1]), int(ends[-1]))


def _steps_of_memory(recording: RecordingData, launches: LaunchSequence) -> MainLoop | None:
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
    if len(ended) <= _FEWEST or after - first <= _LEAST_SHARE * events.num_rows:
        return None
    return MainLoop("", ended[:-1], ended[1:], ended[:-1], ended[1:])


def _periods(recording: RecordingData, launches: LaunchSequence) -> MainLoop | None:
    """Return the iterations in the order of the launches; None if there is no clear period."""
    lines = launches.lines()
    # A line may repeat kernels and copies within itself, as each layer of a model does.
    for elements in (launches.sites(), numbered(lines)[0]):
        found = repeats(elements, fewest=_FEWEST)
        if found is not None and _is_of_lines(lines[_usual(found)]):
            found = _loop_around(launches, elements, found) or found
            return _repeated(recording, launches, found.starts, found.end)
    # The loop may be in a library that one line calls, or run what XLA made of a function.
    elements = launches.kernels() if runs_of_xla(recording).size else launches.stacks()
    found = repeats(elements, fewest=_FEWEST)
    if found is None or found.length == 1 or not lines[_usual(found)].all():
        return None
    return _repeated(recording, launches, found.starts, found.end)


def _of_one_worker(recording: RecordingData, launches: LaunchSequence) -> LaunchSequence:
    """Return the launches of one thread, if several threads run the same loop; else all."""
    threads = launches.threads()
    known, of_launch = np.unique(threads, return_inverse=True)
    if len(known) == 1 or not len(threads):
        return launches
    sites = launches.sites()
    counts = np.zeros((int(sites.max()) + 1, len(known)), np.int64)
    np.add.at(counts, (sites, of_launch.reshape(-1)), 1)
    first, second = np.sort(counts, axis=1)[:, ::-1][:, :2].T
    is_shared = (second >= _FEWEST) & (second > _LEAST_SHARE * first)
    if counts[is_shared].sum() <= _LEAST_SHARE * len(threads):
        return launches
    return LaunchSequence(recording, int(known[counts.sum(axis=0).argmax()]))


def _loop_around(launches: LaunchSequence, elements: np.ndarray, inner: Repeats) -> Repeats | None:
    """Return the loop that runs another one in each round, as a model runs its layers.

    What is launched outside the inner loop is less indented than what is launched in it, which is
    not so for what a step does now and then. Of a loop that has fewer rounds than the inner one in
    each of them, such as epochs, the inner one is shown.
    """
    outer = repeats_around(elements, inner, fewest=_FEWEST)
    if outer is None or len(outer.starts) ** 2 < len(inner.starts):
        return None
    further = further_elements(elements, inner)
    _, first = np.unique(elements[further], return_index=True)
    start = int(inner.starts[inner.usual])
    known = [launches.indentation(start, place) for place in further[first].tolist()]
    is_outside = all(each is not None and each[1] < each[0] for each in known)
    return outer if is_outside else None


def _is_of_lines(lines: np.ndarray) -> bool:
    """Return whether launches are of at least two lines, all known."""
    return bool(lines.all()) and len(np.unique(lines)) >= 2  # noqa: PLR2004 - one line is no loop


def _repeated(
    recording: RecordingData, launches: LaunchSequence, starts: np.ndarray, end: int
) -> MainLoop | None:
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
    return MainLoop("", start, np.append(start[1:], done), host, host_end)


def _usual(found: Repeats) -> slice:
    start = int(found.starts[found.usual])
    return slice(start, start + found.length)


def _is_much(
    recording: RecordingData,
    launches: LaunchSequence,
    starts: np.ndarray,
    ends: np.ndarray,
) -> bool:
    """Return whether spans, in order, have half of the launches or of the recorded time."""
    times = np.searchsorted(launches.called, np.stack([starts, ends]))
    launched = int((times[1] - times[0]).sum())
    lasted = int((ends - starts).sum())
    return bool(
        launched > _LEAST_SHARE * len(launches.called)
        or lasted > _LEAST_SHARE * recording.covered_ns
    )
