"""Compilations of XLA that only samples of the host show."""

import re
from dataclasses import dataclass

import numpy as np

from gpuviz.analysis.launches import have_frame, user_frames
from gpuviz.analysis.xla import runs_of_xla, xla_compilations
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import distinct, plain
from gpuviz.data.recording_data import RecordingData

_COMPILER = re.compile(r"[/\\]jax[/\\]_src[/\\]compiler\.py$")
# What JAX runs if it has no executable for a call: it traces the function first.
_PREPARATION = re.compile(r"[/\\]jax[/\\]_src[/\\]pjit\.py:.*\bcache_miss$")


@dataclass(frozen=True, eq=False, slots=True)
class SampledCompilations:
    """When threads waited for XLA's compiler, in columns.

    Attributes:
        thread: The thread that waited.
        begin: When the first sample of each began, in ns.
        end: When the last one ended.
        stack: The call stack of the first.
    """

    thread: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    stack: np.ndarray


def sampled_compilations(recording: RecordingData) -> SampledCompilations:
    """Return when JAX was seen to trace and compile, if XLA marks no compilations.

    XLA that ran before the first recording marks nothing. Samples of one line without a CUDA call
    of the thread between them are one compilation, if one of them is in the compiler.
    """
    samples, calls = recording.tables["host_samples"], recording.tables["api_calls"]
    threads, begin, end, stacks = (
        plain(samples[name]) for name in ("thread", "time", "end", "stack")
    )
    rows = np.zeros(0, np.int64)
    if not len(xla_compilations(recording)) and not len(runs_of_xla(recording)) and len(stacks):
        rows = np.flatnonzero((stacks != 0) & have_frame(recording, stacks, _prepares))
    rows = rows[np.lexsort((begin[rows], threads[rows]))]
    called, by_thread = plain(calls["time"]), plain(calls["thread"])
    count = np.zeros(len(rows), np.int64)
    for thread in distinct(threads[rows]).tolist():
        own = threads[rows] == thread
        count[own] = np.searchsorted(np.sort(called[by_thread == thread]), begin[rows[own]])
    keys = np.stack([threads[rows], count, user_frames(recording.tables, stacks[rows])])
    is_first = np.append(True, (np.diff(keys, axis=1) != 0).any(axis=0))[: len(rows)]
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(rows))[: len(first)] - 1
    compiles = have_frame(recording, stacks[rows], _is_compiler)
    has_compiled = np.bincount(np.cumsum(is_first) - 1, compiles, len(first)) > 0
    first, last = first[has_compiled], last[has_compiled]
    return SampledCompilations(
        threads[rows[first]], begin[rows[first]], end[rows[last]], stacks[rows[first]]
    )


def is_compilation(recording: RecordingData, stack: int) -> bool:
    """Return whether JAX prepares to run a function in a call stack."""
    return any(map(_prepares, recording.call_stacks.frames(stack)))


def _prepares(frame: Frame) -> bool:
    is_miss = _PREPARATION.search(f"{frame.filename}:{frame.name}") is not None
    return _is_compiler(frame) or (frame.is_installed and is_miss)


def _is_compiler(frame: Frame) -> bool:
    return frame.is_installed and _COMPILER.search(frame.filename) is not None
