"""Kernels that the program compiled or loaded, each with its time and line."""

import numpy as np
import pyarrow as pa

from gpuviz.analysis.xla import function_of, xla_compilations
from gpuviz.data.columns import codes, plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["ranges", "kind"]
# The name of the ranges of Numba's compiler; those of CuPy's have the names of the kernels.
NUMBA = "Numba"
CUPY = "CuPy"
XLA = "XLA"


@Once
def compilations(recording: RecordingData) -> pa.Table:
    """Return what CuPy, Numba and XLA compiled, or CuPy and Numba loaded from a cache on the disk.

    One row for each module of CuPy, kernel of Numba, or function that XLA compiled for JAX, in
    order of time. Columns: ``kernels`` (names; of XLA, the function's), ``time`` (when it began, in
    ns since the recording's start), ``duration_ns`` (until it could be launched), ``compile_ns``
    (of that, the compiler's time), ``cached`` (whether it was in the cache), ``compiler``
    (``CuPy``, ``Numba`` or ``XLA``; empty if it was), ``thread``, ``stack`` (of the first CUDA call
    of that thread from then on; 0 if unknown), and the ``site`` and ``source`` of its line. A
    kernel that this process has launched before is not loaded again.
    """
    table = recording.tables["ranges"]
    kinds = codes(table["kind"], _KINDS)
    is_compiled = kinds == _KINDS.index("compile")
    is_compiled[xla_compilations(recording)] = True
    ids, parents = plain(table["id"]), plain(table["parent"])
    begin, end, threads = (plain(table[name]) for name in ("time", "end", "thread"))
    length = np.maximum(np.where(end == -1, recording.duration_ns, end) - begin, 0)
    loads = ids[kinds == _KINDS.index("load")]
    # The compiler can also be called by itself.
    rows = np.flatnonzero(np.isin(ids, loads) | (is_compiled & ~np.isin(parents, loads)))
    rows = rows[np.argsort(begin[rows], kind="stable")]
    order = np.argsort(ids[rows])
    compiled = np.flatnonzero(is_compiled)
    owner = np.where(np.isin(parents[compiled], loads), parents[compiled], ids[compiled])
    places = order[np.searchsorted(ids[rows], owner, sorter=order)] if compiled.size else compiled
    compile_ns = np.zeros(len(rows), np.int64)
    np.add.at(compile_ns, places, length[compiled])
    compilers = np.full(len(rows), "", object)
    compilers[places] = _compilers(recording, compiled)
    stacks = _stacks(recording, threads[rows], begin[rows])
    lines = [recording.call_stacks.call_site(stack) for stack in stacks.tolist()]
    names = texts(recording.tables, plain(table["name"])[rows])
    return pa.table(
        {
            "kernels": pa.array(
                [_name(*each) for each in zip(names, compilers, strict=True)], pa.utf8()
            ),
            "time": begin[rows],
            "duration_ns": length[rows],
            "compile_ns": compile_ns,
            "cached": pa.array((compilers == "").tolist(), pa.bool_()),
            "compiler": pa.array(compilers.tolist(), pa.utf8()),
            "thread": threads[rows],
            "stack": stacks,
            "site": pa.array([site for site, _ in lines], pa.utf8()),
            "source": pa.array([source for _, source in lines], pa.utf8()),
        }
    )


def _compilers(recording: RecordingData, rows: np.ndarray) -> list[str]:
    """Return which compiler worked in each of some ranges; Numba's are named after it."""
    names = texts(recording.tables, plain(recording.tables["ranges"]["name"])[rows])
    is_xlas = np.isin(rows, xla_compilations(recording))
    own = [NUMBA if name == NUMBA else CUPY for name in names]
    return [XLA if is_xla else name for name, is_xla in zip(own, is_xlas, strict=True)]


def _name(name: str, compiler: str) -> str:
    return function_of(name) if compiler == XLA else name


def _stacks(recording: RecordingData, threads: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the call stack of the first call of each thread from each time on; 0 if unknown."""
    calls = first_calls(recording, threads, times)
    stacks = plain(recording.tables["api_calls"]["stack"])
    found = calls.astype("uint32")
    found[calls >= 0] = stacks[calls[calls >= 0]]
    found[calls < 0] = 0
    return found


def first_calls(recording: RecordingData, threads: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the row of the first CUDA call of each thread from each time on; -1 without one."""
    table = recording.tables["api_calls"]
    begin, of_thread = plain(table["time"]), plain(table["thread"])
    found = np.full(len(times), -1)
    for thread in np.unique(threads).tolist():
        rows = np.flatnonzero(of_thread == thread)
        rows = rows[np.argsort(begin[rows], kind="stable")]
        asked = np.flatnonzero(threads == thread)
        places = np.searchsorted(begin[rows], times[asked])
        has_call = places < len(rows)
        found[asked[has_call]] = rows[places[has_call]]
    return found
