"""What the functions that XLA compiled launch when they first run."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.xla import function_of, runs_of_xla
from gpuviz.data.columns import plain
from gpuviz.data.strings import texts

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuviz.data.recording_data import RecordingData


def launched_first(
    recording: "RecordingData", compiled: "pa.Table"
) -> list[tuple[tuple[int, int], ...]]:
    """Return what each compiled function first launched, in order.

    Each launch is the id of its name and that of its launch configuration. There is none if the
    function did not run before it was compiled again, or was not compiled by XLA.

    Args:
        recording: The recording.
        compiled: Rows of `gpuviz.analysis.compilations.compilations`.
    """
    calls, activities = recording.tables["api_calls"], recording.tables["activities"]
    of_call = calls_of(recording.tables, plain(activities["correlation"]))
    work = np.flatnonzero(of_call >= 0)
    called, caller = (plain(calls[name])[of_call[work]] for name in ("time", "thread"))
    order = np.argsort(called, kind="stable")
    work, called, caller = work[order], called[order], caller[order]
    names, launches = (plain(activities[name])[work] for name in ("name", "launch"))
    found = []
    for begin, end, thread in _first_runs(recording, compiled):
        first, last = np.searchsorted(called, [begin, end])
        own = np.arange(first, last)[caller[first:last] == thread]
        found.append(tuple(zip(names[own].tolist(), launches[own].tolist(), strict=True)))
    return found


def _first_runs(
    recording: "RecordingData", compiled: "pa.Table"
) -> list[tuple[int, int, int]]:
    """Return when each compiled function ran first, and in which thread; 0 if it did not."""
    table, rows = recording.tables["ranges"], runs_of_xla(recording)
    functions = np.array([*map(function_of, texts(recording.tables, plain(table["name"])[rows]))])
    begin, end, threads = (plain(table[name])[rows] for name in ("time", "end", "thread"))
    names = np.array(compiled["kernels"].to_pylist())
    compiler = np.array(compiled["compiler"].to_pylist())
    times, waiting = plain(compiled["time"]), plain(compiled["thread"])
    found = []
    for row, (name, time, thread) in enumerate(zip(names, times, waiting, strict=True)):
        again = times[row + 1 :][(names == name)[row + 1 :] & (waiting == thread)[row + 1 :]]
        runs = np.flatnonzero((functions == name) & (threads == thread) & (begin >= time))
        runs = runs[begin[runs] < (again[0] if len(again) else np.iinfo(np.int64).max)]
        if not len(runs) or compiler[row] != "XLA":
            found.append((0, 0, 0))
            continue
        first = runs[np.argmin(begin[runs])]
        found.append((int(begin[first]), int(end[first]), int(thread)))
    return found
