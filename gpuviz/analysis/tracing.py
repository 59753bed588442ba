"""When JAX traced functions, which it does before XLA compiles them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.analysis.compilations import XLA, compilations
from gpuviz.analysis.intervals import Intervals
from gpuviz.data.columns import plain

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from gpuviz.data.call_stacks import Frame
    from gpuviz.data.recording_data import RecordingData

_JAX = "/jax/"


def tracing(recording: "RecordingData", rows: "NDArray[Any]") -> Intervals:
    """Return when threads were seen to trace functions that XLA then compiled.

    That is the time since the thread's last CUDA call in which it was sampled in JAX, or in what
    JAX calls, below the line that then waits for the compilation.

    Args:
        recording: The recording.
        rows: Rows of `gpuviz.analysis.compilations.compilations`.
    """
    tables, stacks, compiled = recording.tables, recording.call_stacks, compilations(recording)
    calls, samples = tables["api_calls"], tables["host_samples"]
    rows = rows[np.array(compiled["compiler"].to_pylist(), object)[rows] == XLA]
    threads, times, waiting = (
        plain(compiled[name])[rows].tolist() for name in ("thread", "time", "stack")
    )
    found = list[tuple[int, int]]()
    of_thread = {thread: _Thread(calls, samples, thread) for thread in set(threads)}
    for thread, until, stack in zip(threads, times, waiting, strict=True):
        line, own = stacks.user_frame(stack), of_thread[thread]
        place = np.searchsorted(own.returned, until, side="right")
        since = int(own.returned[place - 1]) if place else 0
        found += [
            (max(int(own.begin[at]), since), min(int(own.end[at]), until))
            for at in np.flatnonzero((own.end > since) & (own.begin < until)).tolist()
            if line is not None and _is_in_jax(stacks.frames(int(own.stack[at])), line)
        ]
    begin, end = np.array(found, np.int64).reshape(-1, 2).T
    return Intervals(begin, end)


class _Thread:
    """The samples of a thread, and when its calls returned, in order."""

    def __init__(self, calls: "pa.Table", samples: "pa.Table", thread: int) -> None:
        own = plain(samples["thread"]) == thread
        self.begin, self.end, self.stack = (
            plain(samples[name])[own] for name in ("time", "end", "stack")
        )
        self.returned = np.sort(plain(calls["end"])[plain(calls["thread"]) == thread])


def _is_in_jax(frames: "list[Frame]", line: "Frame") -> bool:
    """Return whether a line of the program has called JAX, in a call stack."""
    place = frames.index(line) if line in frames else 0
    return place > 0 and _JAX in frames[place - 1].filename
