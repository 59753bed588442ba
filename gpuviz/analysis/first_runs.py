"""What compiled functions and kernels launch when they first run."""

import numpy as np
import pyarrow as pa

from gpuviz.analysis.compilations import XLA
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.xla import function_of, runs_of_xla
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts

Launches = tuple[tuple[int, int], ...]


def launched_first(recording: RecordingData, compiled: pa.Table) -> list[Launches]:
    """Return what each compiled function first launched, in order.

    Each launch is the id of its name and that of its launch configuration. There is none if XLA did
    not compile the function, or if it did not run before it was compiled again.

    Args:
        recording: The recording.
        compiled: Its `gpuviz.analysis.compilations.compilations`, or all of some names.
    """
    launched = _Launched(recording)
    threads = plain(compiled["thread"]).tolist()
    return [
        launched.between(thread, begin, end)
        for thread, begin, end in zip(threads, *_first_runs(recording, compiled), strict=True)
    ]


def launched_next(recording: RecordingData, compiled: pa.Table) -> list[Launches]:
    """Return the first launch after each compilation, as `launched_first` has them.

    CuPy compiles a kernel when it launches it. There is none if the thread launches nothing before
    it compiles something of the table again.

    Args:
        recording: The recording.
        compiled: Rows of its `gpuviz.analysis.compilations.compilations`, in order of time.
    """
    launched = _Launched(recording)
    threads, begin, length = (plain(compiled[name]) for name in ("thread", "time", "duration_ns"))
    found = []
    for row, thread in enumerate(threads.tolist()):
        later = begin[row + 1 :][threads[row + 1 :] == thread]
        until = int(later[0]) if len(later) else recording.duration_ns
        found.append(launched.between(thread, int(begin[row] + length[row]), until)[:1])
    return found


class _Launched:
    """The launches of a recording in order of time.

    Args:
        recording: The recording.
    """

    def __init__(self, recording: RecordingData) -> None:
        calls, activities = recording.tables["api_calls"], recording.tables["activities"]
        of_call = calls_of(recording.tables, plain(activities["correlation"]))
        work = np.flatnonzero(of_call >= 0)
        work = work[np.argsort(plain(calls["time"])[of_call[work]], kind="stable")]
        self._called, self._caller = (
            plain(calls[name])[of_call[work]] for name in ("time", "thread")
        )
        self._names, self._launches = (plain(activities[name])[work] for name in ("name", "launch"))

    def between(self, thread: int, begin: int, end: int) -> Launches:
        """Return what a thread launches from one time until another: names and configurations."""
        first, last = np.searchsorted(self._called, [begin, end])
        own = first + np.flatnonzero(self._caller[first:last] == thread)
        names, launches = (each[own].tolist() for each in (self._names, self._launches))
        return tuple(zip(names, launches, strict=True))


def _first_runs(recording: RecordingData, compiled: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return when the first run of each compiled function begins and ends; 0 if none is known."""
    table, rows = recording.tables["ranges"], runs_of_xla(recording)
    begin, end, threads = (plain(table[name])[rows] for name in ("time", "end", "thread"))
    ran = np.array([*map(function_of, texts(recording.tables, plain(table["name"])[rows]))], object)
    functions, compiler = (
        np.array(compiled[name].to_pylist(), object) for name in ("kernels", "compiler")
    )
    times, waiting = plain(compiled["time"]), plain(compiled["thread"])
    found = np.zeros((2, len(times)), np.int64)
    of_xla = compiler == XLA
    for name, thread in {*zip(functions[of_xla], waiting[of_xla], strict=True)}:
        each = np.flatnonzero(of_xla & (functions == name) & (waiting == thread))
        runs = np.flatnonzero((ran == name) & (threads == thread))
        runs = runs[np.argsort(begin[runs], kind="stable")]
        first = np.searchsorted(begin[runs], times[each])
        # The next compilation's first run is not this one's.
        ran_before_next = first < np.append(first[1:], len(runs))
        found[0, each[ran_before_next]] = begin[runs[first[ran_before_next]]]
        found[1, each[ran_before_next]] = end[runs[first[ran_before_next]]]
    return found[0], found[1]
