"""Lines for which the driver loads code in round after round, as for FFT plans made anew."""

from typing import NamedTuple

import numpy as np

from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import CallSites
from gpuviz.analysis.main_loop import regular_from
from gpuviz.analysis.preparation import (
    follows_compilation,
    is_of_loads,
    launch_runs,
    launches_work,
    loads_code,
)
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData

_FEWEST = 8
# As many first launches are what loading each kernel once takes.
_LEAST_FACTOR = 2
# Of the loads, those in the later half of the line's launches.
_LEAST_LATER = 0.1
# Kernels of one name that differ in these are different code, such as what Triton tries.
_OF_CODE = (
    "block_x",
    "block_y",
    "block_z",
    "registers",
    "static_shared_memory",
    "dynamic_shared_memory",
)


class RepeatedLoads(NamedTuple):
    """Rows about a line for which code is loaded again and again.

    Attributes:
        launches: The rows of ``api_calls`` that launch kernels after it, without the first of each
            kernel.
        work: The rows of ``activities`` that they launch.
        before: The line's calls up to each of them since the launch before, and itself.
    """

    launches: np.ndarray
    work: np.ndarray
    before: np.ndarray


@Once
def repeated_loads(recording: RecordingData) -> tuple[RepeatedLoads, ...]:
    """Return the lines for which code is loaded again and again.

    At least eight times a call that loads code precedes a launch of the same line, with no other
    launch of a kernel in between, and at least twice as often as there are different kernels among
    these launches: CUDA and its libraries load each kernel once for each device, when it is first
    launched. Kernels of one name with other blocks, registers or shared memory are different. What
    precedes the first regular iteration is warm-up, as where a library tries several kernels for
    each shape of its arguments; so is what is compiled, and what a line loads hardly any more in
    the later half of its launches.
    """
    calls, activities = recording.tables["api_calls"], recording.tables["activities"]
    loads = loads_code(recording)
    if not loads.any():
        return ()
    order, run = launch_runs(recording)
    compiled = np.unique(run[follows_compilation(recording)[order]])
    loaded = np.setdiff1d(run[loads[order]], compiled)
    line = CallSites(recording, plain(calls["stack"])).numbers("line")
    launches = order[np.searchsorted(run, loaded, side="right") - 1]
    work = first_rows(plain(activities["correlation"]), plain(calls["correlation"])[launches])
    is_known = (work >= 0) & is_of_loads(recording)[launches]
    called = plain(calls["time"])
    is_late = called[launches] >= (regular_from(recording) or 0)
    of_work = launches_work(recording)
    configurations = recording.tables["launch_configurations"]
    launch = first_rows(plain(configurations["id"]), plain(activities["launch"])[work])
    code = [np.append(plain(configurations[each]), 0)[launch] for each in _OF_CODE]
    found = []
    for number in np.unique(line[launches[is_known]]).tolist():
        rows = np.flatnonzero(is_known & (line[launches] == number))
        kernels, devices = (plain(activities[each])[work[rows]] for each in ("name", "device"))
        is_new = np.zeros(len(rows), bool)
        is_new[numbered(kernels, devices, *(each[rows] for each in code))[1]] = True
        late = is_late[rows]
        least = max(_FEWEST, _LEAST_FACTOR * int(np.count_nonzero(is_new & late)))
        middle = np.median(called[of_work & (line == number)])
        goes_on = np.count_nonzero(called[launches[rows]] > middle) >= _LEAST_LATER * len(rows)
        if goes_on and np.count_nonzero(late) >= least:
            again = rows[late & ~is_new]
            before = order[np.isin(run, loaded[again]) & (line[order] == number)]
            found.append(RepeatedLoads(launches[again], work[again], before))
    return tuple(found)


def times_of_repeated_loads(recording: RecordingData, thread: int) -> Intervals:
    """Return when a thread loaded code again, up to the launch after it."""
    calls = recording.tables["api_calls"]
    begin, end = plain(calls["time"]), plain(calls["end"])
    order, run = launch_runs(recording)
    of_call = np.empty(len(order), np.int64)
    of_call[order] = run
    found = [each.before for each in repeated_loads(recording)]
    rows = np.concatenate([*found, np.zeros(0, np.int64)])
    rows = rows[plain(calls["thread"])[rows] == thread]
    rows = rows[np.argsort(begin[rows], kind="stable")]
    runs, first = np.unique(of_call[rows], return_index=True)
    last = np.zeros(len(runs), np.int64)
    np.maximum.at(last, np.searchsorted(runs, of_call[rows]), end[rows])
    return Intervals(begin[rows[first]], last)
