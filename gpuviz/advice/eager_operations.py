"""Operations of JAX that a loop runs one by one, outside of `jax.jit`."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.host_lines import text_of
from gpuviz.analysis.launches import calls_of, have_frame, stacks_of
from gpuviz.analysis.xla import runs_of_xla
from gpuviz.data.columns import distinct, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.data.call_stacks import Frame
    from gpuviz.data.recording_data import RecordingData

# Functions of JAX that run an operation; a function under `jax.jit` is run by none of them.
_OPERATION = re.compile(
    r"jax[/\\]_src[/\\](?:(?:numpy|lax|nn|scipy|ops|image)[/\\].*|random|dispatch)\.py$"
)
# With fewer, a loop may do its work in a function under `jax.jit` and a few operations beside it.
_FEWEST_IN_ITERATION = 5
_FEWEST_ITERATIONS = 5
_MODULE = "<module>"


@dataclass(frozen=True, eq=False, slots=True)
class EagerOperations:
    """Operations that each iteration of a loop runs, each as an executable of XLA.

    Attributes:
        calls: Mask of the CUDA calls that they make.
        in_iteration: How many each iteration runs.
        iterations: How many iterations there are.
        place: The function or line that they are of, for the begin of a sentence.
    """

    calls: "NDArray[Any]"
    in_iteration: int
    iterations: int
    place: str


def eager_operations(recording: "RecordingData", from_ns: int) -> EagerOperations | None:
    """Return the operations that a loop runs outside of `jax.jit`; None if there are few.

    The loop has as many iterations as the median call stack has runs, of those with at least five.
    Call stacks with at least half as many are of it; one that runs several operations, as in the
    backward pass of `jax.grad`, has more.

    Args:
        recording: The recording.
        from_ns: Runs before that do not count, in ns since the recording's start.
    """
    run, stack = _runs(recording, from_ns)
    if not len(stack):
        return None
    is_eager = have_frame(recording, stack, _is_operation)
    stacks, counts = np.unique(stack[is_eager], return_counts=True)
    is_repeated = counts >= _FEWEST_ITERATIONS
    if not is_repeated.any():
        return None
    iterations = int(np.median(counts[is_repeated]))
    of_loop = is_repeated & (2 * counts >= iterations)
    in_iteration = round(int(counts[of_loop].sum()) / iterations)
    if in_iteration < _FEWEST_IN_ITERATION:
        return None
    is_chosen = np.append(is_eager & np.isin(stack, stacks[of_loop]), False)
    place = _place(recording, stacks[of_loop].tolist())
    return EagerOperations(is_chosen[run], in_iteration, iterations, place)


def _runs(recording: "RecordingData", from_ns: int) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return the run of an executable that each call is in, or -1, and the call stack of each run.

    That of a run is the one of its first launch; runs that launch nothing are none.
    """
    tables, rows = recording.tables, runs_of_xla(recording)
    begin, end, thread = (plain(tables["ranges"][name])[rows] for name in ("time", "end", "thread"))
    called, by_thread = (plain(tables["api_calls"][name]) for name in ("time", "thread"))
    run = np.full(len(called), -1)
    for each in distinct(thread):
        own = np.flatnonzero((thread == each) & (begin >= from_ns))
        own = own[np.argsort(begin[own], kind="stable")]
        calls = np.flatnonzero(by_thread == each)
        place = np.searchsorted(begin[own], called[calls], side="right") - 1
        inside = place >= 0
        inside[inside] = called[calls[inside]] <= end[own[place[inside]]]
        run[calls[inside]] = own[place[inside]]
    launched = distinct(calls_of(tables, plain(tables["activities"]["correlation"])))
    launched = launched[launched >= 0]
    launched = launched[run[launched] >= 0]
    launched = launched[np.argsort(called[launched], kind="stable")]
    known, first = np.unique(run[launched], return_index=True)
    numbers = np.full(len(rows) + 1, -1)
    numbers[known] = np.arange(len(known))
    return numbers[run], stacks_of(tables, launched[first])


def _is_operation(frame: "Frame") -> bool:
    return frame.is_installed and _OPERATION.search(frame.filename) is not None


def _place(recording: "RecordingData", stacks: list[int]) -> str:
    """Return the innermost function or line that all call stacks are in."""
    paths = [recording.call_stacks.user_frames(stack)[::-1] for stack in stacks]
    depth = 0
    while all(len(path) > depth and path[depth] == paths[0][depth] for path in paths):
        depth += 1
    after = {path[depth].name if len(path) > depth else "" for path in paths}
    if len(after) == 1 and (name := after.pop()):
        return "The program" if name == _MODULE else f"`{name}`"
    return text_of(paths[0][depth - 1]) if depth else "The program"
