"""Kernels and functions that were compiled again and again."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuviz.analysis.compilations import compilations
from gpuviz.analysis.first_runs import launched_first
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.tracing import tracing
from gpuviz.analysis.xla import threads_of_xla
from gpuviz.data.columns import plain
from gpuviz.data.once import Once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData

# Numba compiles a kernel for each combination of types, which are few.
_COMPILERS = ("CuPy", "XLA")
# A kernel is compiled for each combination of types and dimensions of its arguments.
_FEWEST = 8
# The same kernels on as many blocks are hardly those of other shapes.
_FEWEST_ALIKE = 3
# Kernels that CuPy writes; their sources differ in nothing but types.
_OF_CUPY = "cupy"


class RepeatedCompilation(NamedTuple):
    """Something that was compiled again and again.

    Attributes:
        rows: The rows of `gpuviz.analysis.compilations.compilations`, in order of time.
        compiler: ``CuPy`` or ``XLA``.
        is_alike: Whether it launches the same kernels on as many blocks each time.
    """

    rows: "NDArray[Any]"
    compiler: str
    is_alike: bool


@Once
def repeated_compilations(recording: "RecordingData") -> tuple[RepeatedCompilation, ...]:
    """Return what was compiled again and again.

    That is a name of the program's own kernels for CuPy, or of functions of XLA, that was compiled
    at least eight times; or a function of XLA that a line has compiled at least three times, and
    that launches the same kernels on as many blocks each time.
    """
    return tuple(_repeated(recording))


def times_of_repeated_compilations(recording: "RecordingData", thread: int) -> Intervals:
    """Return when a thread waited for what had been compiled before, also in other threads."""
    compiled = compilations(recording)
    waiting = threads_of_xla(recording).get(thread, thread)
    again = [each.rows[1:] for each in repeated_compilations(recording)]
    rows = np.concatenate([*again, np.zeros(0, np.int64)])
    rows = rows[plain(compiled["thread"])[rows] == waiting]
    begin, length = (plain(compiled[name])[rows] for name in ("time", "duration_ns"))
    return Intervals(begin, begin + length).joined(tracing(recording, rows))


def _repeated(recording: "RecordingData") -> "Iterator[RepeatedCompilation]":
    table = compilations(recording)
    names, compilers = (
        np.array(table[name].to_pylist(), object) for name in ("kernels", "compiler")
    )
    for name in dict.fromkeys(names[np.isin(compilers, _COMPILERS)]):
        if name.startswith(_OF_CUPY):
            continue
        rows = np.flatnonzero((names == name) & (compilers != ""))
        compiler = compilers[rows[0]]
        for alike in _alike(recording, rows) if len(rows) >= _FEWEST_ALIKE else ():
            yield RepeatedCompilation(alike, compiler, is_alike=True)
            rows = rows[~np.isin(rows, alike)]
        if len(rows) >= _FEWEST:
            yield RepeatedCompilation(rows, compiler, is_alike=False)


def _alike(recording: "RecordingData", rows: "NDArray[Any]") -> "Iterator[NDArray[Any]]":
    """Yield those of some rows that launch the same for one line."""
    table = compilations(recording).take(rows)
    alike: dict[Any, list[int]] = {}
    launched = launched_first(recording, table)
    for row, site, launches in zip(rows.tolist(), table["site"].to_pylist(), launched, strict=True):
        if launches:
            alike.setdefault((site, launches), []).append(row)
    yield from (np.array(each) for each in alike.values() if len(each) >= _FEWEST_ALIKE)
