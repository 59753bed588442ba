"""What the functions that XLA compiled launch when they first run."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.analysis.compilations import XLA
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.xla import function_of, runs_of_xla
from gpuviz.data.columns import plain
from gpuviz.data.strings import texts

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData

    Launches = tuple[tuple[int, int], ...]


def launched_first(recording: "RecordingData", compiled: "pa.Table") -> "list[Launches]":
    """Return what each compiled function first launched, in order.

    Each launch is the id of its name and that of its launch configuration. There is none if XLA did
    not compile the function, or if it did not run before it was compiled again.

    Args:
        recording: The recording.
        compiled: Its `gpuviz.analysis.compilations.compilations`, or all of some names.
    """
    calls, activities = recording.tables["api_calls"], recording.tables["activities"]
    of_call = calls_of(recording.tables, plain(activities["correlation"]))
    work = np.flatnonzero(of_call >= 0)
    work = work[np.argsort(plain(calls["time"])[of_call[work]], kind="stable")]
    called, caller = (plain(calls[name])[of_call[work]] for name in ("time", "thread"))
    names, launches = (plain(activities[name])[work] for name in ("name", "launch"))
    threads = plain(compiled["thread"]).tolist()
    found = []
    for thread, begin, end in zip(threads, *_first_runs(recording, compiled), strict=True):
        first, last = np.searchsorted(called, [begin, end])
        own = first + np.flatnonzero(caller[first:last] == thread)
        found.append(tuple(zip(names[own].tolist(), launches[own].tolist(), strict=True)))
    return found


def _first_runs(
    recording: "RecordingData", compiled: "pa.Table"
) -> "tuple[NDArray[Any], NDArray[Any]]":
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
