"""When JAX traced functions, which it does before XLA compiles them."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.analysis.compilations import compilations
from gpuviz.analysis.intervals import Intervals
from gpuviz.data.columns import plain

if TYPE_CHECKING:
    from gpuviz.data.call_stacks import Frame
    from gpuviz.data.recording_data import RecordingData

_JAX = "/jax/"


def tracing(recording: "RecordingData", thread: int) -> Intervals:
    """Return when a thread was seen to trace functions that XLA then compiled for it.

    That is the time since its last CUDA call in which it was sampled in JAX, or in what JAX calls,
    below the line that then waits for the compilation.
    """
    tables, stacks = recording.tables, recording.call_stacks
    compiled = compilations(recording)
    of_xla = np.array(compiled["compiler"].to_pylist(), object) == "XLA"
    rows = np.flatnonzero(of_xla & (plain(compiled["thread"]) == thread))
    own = plain(tables["api_calls"]["thread"]) == thread
    returned = np.sort(plain(tables["api_calls"]["end"])[own])
    table = tables["host_samples"]
    own = plain(table["thread"]) == thread
    begin, end, sampled = (plain(table[name])[own] for name in ("time", "end", "stack"))
    found = [(0, 0)]
    compiled = compiled.take(rows)
    for until, stack in zip(plain(compiled["time"]), plain(compiled["stack"]), strict=True):
        place = np.searchsorted(returned, until, side="right")
        since = returned[place - 1] if place else 0
        line = stacks.user_frame(int(stack))
        found += [
            (max(begin[at], since), min(end[at], until))
            for at in np.flatnonzero((end > since) & (begin < until)).tolist()
            if line is not None and _is_in_jax(stacks.frames(int(sampled[at])), line)
        ]
    first, last = np.array(found, np.int64).T
    return Intervals(first, last)


def _is_in_jax(frames: "list[Frame]", line: "Frame") -> bool:
    """Return whether a line of the program has called JAX, in a call stack."""
    place = frames.index(line) if line in frames else 0
    return place > 0 and _JAX in frames[place - 1].filename
