"""When JAX traced functions, which it does before XLA compiles them."""

from typing import NamedTuple

import numpy as np

from gpuviz.analysis.compilations import XLA, compilations
from gpuviz.analysis.intervals import Intervals
from gpuviz.data.call_stacks import CallStacks, Frame
from gpuviz.data.columns import plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData

_JAX = "/jax/"


class _Samples(NamedTuple):
    """When threads were seen to trace, in columns.

    Attributes:
        row: The row of `gpuviz.analysis.compilations.compilations` that follows.
        begin: When each sample begins, in ns; not before what the thread did before it traced.
        end: When it ends; not after the begin of the compilation.
    """

    row: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def tracing(recording: RecordingData, rows: np.ndarray) -> Intervals:
    """Return when threads were seen to trace functions that XLA then compiled.

    That is the time since the thread's last CUDA call or compilation in which it was sampled in
    JAX, or in what JAX calls, below the line that then waits for the compilation.

    Args:
        recording: The recording.
        rows: Rows of `gpuviz.analysis.compilations.compilations`.
    """
    row, begin, end = _tracing(recording)
    chosen = np.isin(row, rows)
    return Intervals(begin[chosen], end[chosen])


@Once
def _tracing(recording: RecordingData) -> _Samples:
    """Return the samples before all compilations of XLA."""
    compiled, samples = compilations(recording), recording.tables["host_samples"]
    is_xlas = np.array(compiled["compiler"].to_pylist(), object) == XLA
    threads, waiting = plain(compiled["thread"]), plain(compiled["stack"])
    sampled, stacks = plain(samples["thread"]), plain(samples["stack"])
    begin, end = plain(samples["time"]), plain(samples["end"])
    parts = [(np.zeros(0, np.int64),) * 4]
    for thread in np.unique(threads[is_xlas]).tolist():
        rows = np.flatnonzero(is_xlas & (threads == thread))
        since, until = _times_before(recording, rows, thread)
        own = np.flatnonzero(sampled == thread)
        own = own[np.argsort(begin[own], kind="stable")]
        first = np.searchsorted(np.maximum.accumulate(end[own]), since, side="right")
        counts = np.maximum(np.searchsorted(begin[own], until) - first, 0)
        place = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = own[first[place] + within]
        place, at = place[end[at] > since[place]], at[end[at] > since[place]]
        starts, stops = np.maximum(begin[at], since[place]), np.minimum(end[at], until[place])
        parts.append((rows[place], at, starts, stops))
    row, at, begin, end = (np.concatenate(each) for each in zip(*parts, strict=True))
    chosen = _are_in_jax(recording.call_stacks, stacks[at], waiting[row])
    return _Samples(row[chosen], begin[chosen], end[chosen])


def _times_before(
    recording: RecordingData, rows: np.ndarray, thread: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return when a thread's last call or compilation before each of some had ended, and it began.

    The compilations are all of XLA in the thread, in order of time.
    """
    compiled, calls = compilations(recording), recording.tables["api_calls"]
    begin, length = (plain(compiled[name])[rows] for name in ("time", "duration_ns"))
    returned = np.sort(plain(calls["end"])[plain(calls["thread"]) == thread])
    # Without a call before, the last one: 0.
    returned = np.append(returned, 0)[np.searchsorted(returned, begin, side="right") - 1]
    ended = np.maximum.accumulate(np.append(0, begin + length))[:-1]
    return np.maximum(returned, ended), begin


def _are_in_jax(stacks: CallStacks, sampled: np.ndarray, waiting: np.ndarray) -> np.ndarray:
    """Return whether the lines of call stacks have called JAX in other ones, one of each."""
    pairs, number = np.unique(np.stack([sampled, waiting]), axis=1, return_inverse=True)
    lines = map(stacks.user_frame, pairs[1].tolist())
    found = [
        line is not None and _is_in_jax(stacks.frames(stack), line)
        for stack, line in zip(pairs[0].tolist(), lines, strict=True)
    ]
    return np.array(found, bool)[number.ravel()]


def _is_in_jax(frames: list[Frame], line: Frame) -> bool:
    """Return whether a line of the program has called JAX, in a call stack."""
    place = frames.index(line) if line in frames else 0
    return place > 0 and _JAX in frames[place - 1].filename
