"""What a program does once before it can work: compiling, loading code, starting libraries.

CUDA loads a kernel's code when the kernel is first launched (lazy loading, since CUDA 11.7),
libraries such as cuBLAS load modules, allocate and create streams on first use, and CuPy, Numba and
XLA compile.
"""

import re

import numpy as np

from gpuviz.analysis.compilations import compilations, first_calls
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import user_frames
from gpuviz.analysis.tracing import tracing
from gpuviz.analysis.unseen import is_whole
from gpuviz.analysis.xla import threads_of_xla, xla_compilations
from gpuviz.data.call_stacks import IMPORT_SYSTEM
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

# In the order in which time that is several of them counts.
PREPARATIONS = ("compilation", "module loading", "imports", "first use")

_KERNEL = DICTIONARIES["activities", "kind"].index("kernel")
_RANGES = DICTIONARIES["ranges", "kind"]
# The driver's functions that load code.
_LOAD = re.compile(r"cu(Module|Library|Link)")


def preparations(recording: RecordingData, thread: int) -> tuple[Intervals, ...]:
    """Return when a thread prepared, for each of `PREPARATIONS`; they may overlap.

    A compilation is that of CuPy, Numba or XLA, with JAX's tracing before it; that of XLA is also
    one of the threads that launch for the one that waits for it. Loading is that of kernels from
    CuPy's cache, and the driver's calls that load code. Imports are host samples in Python's import
    system below a line of the program, as for parts of CuPy that are imported when they are needed.
    First use is the call that launches the first kernel of a name, and what a library does in one
    line of the program from the first such call to its next launch. The host's time before other
    first launches may be work, and does not count.
    """
    calls, ranges = recording.tables["api_calls"], recording.tables["ranges"]
    begin, end = plain(calls["time"]), np.maximum(plain(calls["end"]), plain(calls["time"]))
    of_thread = plain(calls["thread"]) == thread
    is_loading, is_first = loads_code(recording), _launches_first(recording)
    # A kernel of a window may have run before.
    if recording.bounds is not None or not is_whole(recording.tables):
        is_first = np.zeros(len(is_first), bool)
    first, last = _from_load_to_launch(recording, thread)
    kinds, range_thread = codes(ranges["kind"], _RANGES), plain(ranges["thread"])
    compiling = (kinds == _RANGES.index("compile")) & (range_thread == thread)
    waiting = threads_of_xla(recording).get(thread, thread)
    of_xla = xla_compilations(recording)
    compiling[of_xla[range_thread[of_xla] == waiting]] = True
    waited = np.flatnonzero(plain(compilations(recording)["thread"]) == waiting)
    is_load = (kinds == _RANGES.index("load")) & (range_thread == thread)
    spans = [np.flatnonzero(each) for each in (compiling, is_load)]
    range_begin = plain(ranges["time"])
    range_end = plain(ranges["end"])
    range_end = np.maximum(np.where(range_end < 0, recording.duration_ns, range_end), range_begin)
    loading, using = (np.flatnonzero(of_thread & each) for each in (is_loading, is_first))
    imports = _imports(recording, thread)
    return (
        Intervals(range_begin[spans[0]], range_end[spans[0]]).joined(tracing(recording, waited)),
        Intervals(
            np.append(range_begin[spans[1]], begin[loading]),
            np.append(range_end[spans[1]], end[loading]),
        ),
        imports,
        Intervals(np.append(begin[first], begin[using]), np.append(end[last], end[using])),
    )


@Once
def prepares(recording: RecordingData) -> np.ndarray:
    """Return whether each row of ``api_calls`` belongs to the preparation of a kernel.

    So do all calls of a thread up to the launch of a kernel, if one of them loads code, launches
    the first kernel of a name, or follows a compilation.
    """
    found = _launches_first(recording) | follows_compilation(recording) | loads_code(recording)
    order, run = launch_runs(recording)
    of_run = np.zeros(len(found), bool)
    of_run[order] = np.isin(run, run[found[order]])
    return of_run


@Once
def launch_runs(recording: RecordingData) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of ``api_calls`` by thread and time, and the number of the run of each.

    A run ends with the launch of a kernel, or with the last call of a thread; in a thread that
    launches only copies, as some of XLA's do, with that of any.
    """
    calls = recording.tables["api_calls"]
    threads = plain(calls["thread"])
    order = np.argsort(plain(calls["time"]), kind="stable")
    order = order[np.argsort(threads[order], kind="stable")]
    ends = _launches_kernel(recording)
    ends |= launches_work(recording) & ~np.isin(threads, threads[ends])
    ends = ends[order]
    ends[:-1] |= threads[order[1:]] != threads[order[:-1]]
    run = np.concatenate([[0], np.cumsum(ends)[:-1]]) if len(order) else order
    return order, run


def _from_load_to_launch(recording: RecordingData, thread: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first load of each run of a thread's calls, and the last call in its line."""
    calls = recording.tables["api_calls"]
    order, run = launch_runs(recording)
    own = plain(calls["thread"])[order] == thread
    order, run = order[own], run[own]
    loads = np.flatnonzero(loads_code(recording)[order])
    loaded, first = np.unique(run[loads], return_index=True)
    first = loads[first]
    lines = user_frames(recording.tables, plain(calls["stack"])[order])
    last = first.copy()
    ends = np.searchsorted(run, loaded, side="right")
    for number, (begin, end) in enumerate(zip(first.tolist(), ends.tolist(), strict=True)):
        if lines[begin]:
            last[number] += np.flatnonzero(lines[begin:end] == lines[begin])[-1]
    return order[first], order[last]


def _imports(recording: RecordingData, thread: int) -> Intervals:
    """Return when a thread imported modules, as far as it was sampled."""
    samples = recording.tables["host_samples"]
    rows = np.flatnonzero(plain(samples["thread"]) == thread)
    stacks = plain(samples["stack"])[rows]
    numbers, first = numbered(stacks)
    imports = [_is_import(recording, stack) for stack in stacks[first].tolist()]
    rows = rows[np.array(imports, bool)[numbers]]
    return Intervals(plain(samples["time"])[rows], plain(samples["end"])[rows])


def _is_import(recording: RecordingData, stack: int) -> bool:
    """Return whether Python's import system is between the program's line and what runs."""
    for frame in recording.call_stacks.frames(stack):
        if frame.filename == IMPORT_SYSTEM:
            return True
        if not frame.is_installed:
            return False
    return False


@Once
def loads_code(recording: RecordingData) -> np.ndarray:
    """Return whether each call loads code."""
    names = plain(recording.tables["api_calls"]["name"])
    return are_named(recording.tables, names, _LOAD.match)


@Once
def is_of_loads(recording: RecordingData) -> np.ndarray:
    """Return whether each call is of a line that loads code before the launch that follows."""
    calls = recording.tables["api_calls"]
    order, run = launch_runs(recording)
    lines = user_frames(recording.tables, plain(calls["stack"])[order]).astype(np.int64)
    places = run * (int(lines.max(initial=0)) + 1) + lines
    found = np.zeros(calls.num_rows, bool)
    found[order] = np.isin(places, places[loads_code(recording)[order] & (lines != 0)])
    return found


def launches_work(recording: RecordingData) -> np.ndarray:
    """Return whether each call launches anything."""
    launched = plain(recording.tables["activities"]["correlation"])
    calls = plain(recording.tables["api_calls"]["correlation"])
    found: np.ndarray = np.isin(calls, launched[launched != 0])
    return found


def _launches_kernel(recording: RecordingData) -> np.ndarray:
    """Return whether each call launches a kernel or a graph."""
    activities = recording.tables["activities"]
    is_kernel = codes(activities["kind"], DICTIONARIES["activities", "kind"]) == _KERNEL
    launched = plain(activities["correlation"])[is_kernel]
    calls = plain(recording.tables["api_calls"]["correlation"])
    found: np.ndarray = first_rows(launched, calls) >= 0
    return found


def follows_compilation(recording: RecordingData) -> np.ndarray:
    """Return whether a kernel was compiled or loaded between each call and the previous one."""
    table = compilations(recording)
    times, threads = plain(table["time"]), plain(table["thread"])
    after = [(times, threads)]
    for launching, waiting in threads_of_xla(recording).items():
        own = times[threads == waiting]
        after.append((own, np.full(len(own), launching)))
    times, threads = (np.concatenate(each) for each in zip(*after, strict=True))
    calls = first_calls(recording, threads, times)
    found = np.zeros(recording.tables["api_calls"].num_rows, bool)
    found[calls[calls >= 0]] = True
    return found


@Once
def _launches_first(recording: RecordingData) -> np.ndarray:
    """Return whether each call launches the first kernel of a name."""
    activities = recording.tables["activities"]
    names, launched = plain(activities["name"]), plain(activities["correlation"])
    order = np.argsort(plain(activities["time"]), kind="stable")
    first = order[numbered(names[order])[1]]
    calls = plain(recording.tables["api_calls"]["correlation"])
    found: np.ndarray = first_rows(launched[first[names[first] != 0]], calls) >= 0
    return found
