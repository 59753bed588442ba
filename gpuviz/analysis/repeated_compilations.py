"""Kernels and functions that were compiled again and again."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gpuviz.analysis.compilations import CUPY, XLA, compilations, first_calls
from gpuviz.analysis.first_runs import launched_first, launched_next
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.statements import Statements
from gpuviz.analysis.tracing import tracing
from gpuviz.analysis.xla import runs_operation, threads_of_xla
from gpuviz.data.columns import plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData

# Numba compiles a kernel for each combination of types, which are few.
_COMPILERS = (CUPY, XLA)
# A kernel is compiled for each combination of types and dimensions of its arguments.
_FEWEST = 8
# The same kernels on as many blocks are hardly those of other shapes; but small arrays of all
# shapes need one block. CuPy's may be those of other types, of which a line has one for each real
# and complex precision.
_FEWEST_ALIKE = {CUPY: 5, XLA: 3}
# Kernels that CuPy writes; their sources differ in nothing but types.
_OF_CUPY = "cupy"


class RepeatedCompilation(NamedTuple):
    """Something that was compiled again and again.

    Attributes:
        rows: The rows of `gpuviz.analysis.compilations.compilations`, in order of time.
        compiler: ``CuPy`` or ``XLA``.
        is_alike: Whether it launches the same kernels on as many blocks each time, and one of them
            on several; of CuPy's, the first kernel.
    """

    rows: np.ndarray
    compiler: str
    is_alike: bool


@Once
def repeated_compilations(recording: RecordingData) -> tuple[RepeatedCompilation, ...]:
    """Return what was compiled again and again.

    That is a name of the program's own kernels for CuPy, or of functions of XLA, that a line has
    compiled at least eight times; or at least five times, or three times for XLA, if it launches
    the same kernels on as many blocks each time, one of them on several. Other lines may compile
    something else of that name. What XLA compiles for operations of JAX counts once for each run of
    a line: one that creates parameters compiles the same operation for all of their shapes.
    """
    return tuple(_repeated(recording))


def times_of_repeated_compilations(recording: RecordingData, thread: int) -> Intervals:
    """Return when a thread waited for what had been compiled before, also in other threads."""
    compiled = compilations(recording)
    waiting = threads_of_xla(recording).get(thread, thread)
    again = [each.rows[1:] for each in repeated_compilations(recording)]
    rows = np.concatenate([*again, np.zeros(0, np.int64)])
    rows = rows[plain(compiled["thread"])[rows] == waiting]
    begin, length = (plain(compiled[name])[rows] for name in ("time", "duration_ns"))
    return Intervals(begin, begin + length).joined(tracing(recording, rows))


def _repeated(recording: RecordingData) -> Iterator[RepeatedCompilation]:
    table = compilations(recording)
    sites, is_counted = table["site"].to_pylist(), _are_counted(recording)
    compiled: dict[tuple[str, str], list[int]] = {}
    for row, each in enumerate(
        zip(table["kernels"].to_pylist(), table["compiler"].to_pylist(), strict=True)
    ):
        if is_counted[row]:
            compiled.setdefault(each, []).append(row)
    alike = _alike(recording, is_counted)
    for (name, compiler), numbers in compiled.items():
        if compiler not in _COMPILERS or name.startswith(_OF_CUPY):
            continue
        rows = np.array(numbers)
        is_often = compiler == CUPY and len(_often_on_a_line(rows, sites)) > 0
        for same in () if is_often else alike.get((name, compiler), ()):
            yield RepeatedCompilation(same, compiler, is_alike=True)
            rows = rows[~np.isin(rows, same)]
        rows = _often_on_a_line(rows, sites)
        if len(rows):
            yield RepeatedCompilation(rows, compiler, is_alike=False)


def _often_on_a_line(rows: np.ndarray, sites: list[str]) -> np.ndarray:
    """Return those of some rows of which their line has at least eight."""
    counts = Counter(sites[each] for each in rows.tolist())
    return np.array([each for each in rows.tolist() if counts[sites[each]] >= _FEWEST], np.int64)


def _are_counted(recording: RecordingData) -> np.ndarray:
    """Return which compilations count: of an operation of JAX, the first in each run of a line."""
    table = compilations(recording)
    counted = np.ones(table.num_rows, bool)
    operations = [
        row
        for row, (compiler, stack) in enumerate(
            zip(table["compiler"].to_pylist(), table["stack"].to_pylist(), strict=True)
        )
        if compiler == XLA and stack and runs_operation(recording, stack)
    ]
    if not operations:
        return counted
    rows = np.array(operations)
    calls = first_calls(recording, plain(table["thread"])[rows], plain(table["time"])[rows])
    runs, _ = Statements(recording).of_calls(calls)
    names, sites = (table[column].take(rows).to_pylist() for column in ("kernels", "site"))
    seen = set[tuple[str, str, int]]()
    for row, *each in zip(operations, names, sites, runs.tolist(), strict=True):
        counted[row] = tuple(each) not in seen
        seen.add(tuple(each))
    return counted


def _alike(
    recording: RecordingData, is_counted: np.ndarray
) -> dict[tuple[str, str], list[np.ndarray]]:
    """Return the counted rows of what launches the same for one line, by name and compiler."""
    compiled, large = compilations(recording), _with_several_blocks(recording)
    compilers = np.array(compiled["compiler"].to_pylist(), object)
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    for compiler, fewest in _FEWEST_ALIKE.items():
        rows = np.flatnonzero((compilers == compiler) & is_counted)
        if len(rows) < fewest:
            continue
        table = compiled.take(rows)
        names, sites = (table[column].to_pylist() for column in ("kernels", "site"))
        launched = (launched_first if compiler == XLA else launched_next)(recording, table)
        same: dict[Any, list[int]] = {}
        for row, name, site, launches in zip(rows.tolist(), names, sites, launched, strict=True):
            if any(launch in large for _, launch in launches):
                same.setdefault((name, site, launches), []).append(row)
        for (name, *_), each in same.items():
            if len(each) >= fewest:
                found.setdefault((name, compiler), []).append(np.array(each))
    return found


def _with_several_blocks(recording: RecordingData) -> set[int]:
    """Return the ids of the launch configurations with more than one thread block."""
    table = recording.tables["launch_configurations"]
    grids = np.array([plain(table[f"grid_{axis}"]) for axis in "xyz"])
    return {*plain(table["id"])[grids.max(axis=0) > 1].tolist()}
