"""Operations of JAX that a loop runs one by one, outside of `jax.jit`."""

from dataclasses import dataclass

import numpy as np

from gpuviz.advice.host.host_gaps import LONG_NS
from gpuviz.advice.host_lines import text_of
from gpuviz.advice.replay.trace import COPY, KERNEL
from gpuviz.analysis.launches import calls_of, have_frame, stacks_of
from gpuviz.analysis.xla import is_operation, runs_of_xla, threads_of_xla
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

# With fewer, a loop may do its work in a function under `jax.jit` and a few operations beside it.
_FEWEST_IN_ITERATION = 5
_FEWEST_ITERATIONS = 5
# Bytes of a number with two parts in float64.
_MOST_OF_NUMBER = 16
_MODULE = "<module>"


@dataclass(frozen=True, eq=False, slots=True)
class EagerOperations:
    """Operations that each iteration of a loop runs, each as an executable of XLA.

    Attributes:
        calls: Mask of the CUDA calls that they make.
        copies: Mask of the calls with which threads of XLA copy the numbers among their arguments,
            each soon after another call for them.
        stacks: The call stack of each call; for these copies that of the operation.
        in_iteration: How many each iteration runs.
        iterations: How many iterations there are.
        place: The function or line that they are of, for the begin of a sentence.
    """

    calls: np.ndarray
    copies: np.ndarray
    stacks: np.ndarray
    in_iteration: int
    iterations: int
    place: str


def eager_operations(recording: RecordingData, from_ns: int) -> EagerOperations | None:
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
    is_eager = have_frame(recording, stack, is_operation)
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
    calls = is_chosen[run]
    user = _users_of_copies(recording, calls)
    stacks_of_calls = plain(recording.tables["api_calls"]["stack"])
    return EagerOperations(
        calls=calls,
        copies=user >= 0,
        stacks=np.where(user >= 0, stacks_of_calls[user], stacks_of_calls),
        in_iteration=in_iteration,
        iterations=iterations,
        place=_place(recording, stacks[of_loop].tolist()),
    )


def _users_of_copies(recording: RecordingData, made: np.ndarray) -> np.ndarray:
    """Return which of some calls uses the number that a thread of XLA copies with each call, or -1.

    A number of Python is such an argument, and a constant in a function under `jax.jit`. The copy's
    calls are those from it back to the last call of the thread for which the other works, or to the
    last copy; each comes soon after the one before.
    """
    calls, activities = recording.tables["api_calls"], recording.tables["activities"]
    begin, end, thread = (plain(calls[name]) for name in ("time", "end", "thread"))
    found = np.full(len(begin), -1)
    is_small = codes(activities["kind"], DICTIONARIES["activities", "kind"]) == COPY
    is_small &= plain(activities["bytes"]) <= _MOST_OF_NUMBER
    copied = calls_of(recording.tables, plain(activities["correlation"])[is_small])
    copies = np.isin(np.arange(len(begin)), copied)
    launches = np.isin(
        np.arange(len(begin)), calls_of(recording.tables, plain(activities["correlation"]))
    )
    helping = threads_of_xla(recording)
    for caller in {*helping.values()}:
        helpers = [each for each, other in helping.items() if other == caller]
        order = np.flatnonzero(np.isin(thread, [caller, *helpers]))
        order = order[np.argsort(begin[order], kind="stable")]
        is_own = thread[order] == caller
        # The next call of the caller, and the next launch of a helper.
        following = _next(is_own)
        launch = _next(launches[order] & ~is_own)
        is_used = np.append(made[order], False)[following] & np.append(copies[order], False)[launch]
        before = np.append(0, np.maximum.accumulate(end[order])[:-1])
        is_used &= ~is_own & (begin[order] - before < LONG_NS)
        found[order[is_used]] = order[following[is_used]]
    return found


def _next(chosen: np.ndarray) -> np.ndarray:
    """Return the place of the next chosen element from each on; their number if there is none."""
    places = np.where(chosen, np.arange(len(chosen)), len(chosen))
    found: np.ndarray = np.minimum.accumulate(places[::-1])[::-1]
    return found


def _runs(recording: RecordingData, from_ns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the run of an executable that each call is in, or -1, and the call stack of each run.

    That of a run is the one of its first launch; runs that launch nothing are none.
    """
    rows = runs_of_xla(recording)
    if not len(rows):
        return _runs_without_ranges(recording, from_ns)
    tables = recording.tables
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


def _runs_without_ranges(recording: RecordingData, from_ns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the same if XLA marks no runs: it does not if it ran before the first recording.

    A run is then all calls that a thread makes in a row with one call stack, so that several
    executables that one line runs in a row count as one.
    """
    calls, kinds = recording.tables["api_calls"], recording.tables["activities"]["kind"]
    begin, stacks, threads = (plain(calls[name]) for name in ("time", "stack", "thread"))
    correlations = plain(recording.tables["activities"]["correlation"])
    is_kernel = codes(kinds, DICTIONARIES["activities", "kind"]) == KERNEL
    launched = distinct(calls_of(recording.tables, correlations[is_kernel]))
    launches = np.isin(np.arange(len(begin)), launched)
    order = np.flatnonzero((stacks != 0) & (begin >= from_ns))
    order = order[np.lexsort((begin[order], threads[order]))]
    begins = np.ones(len(order), bool)
    begins[1:] = np.diff(stacks[order].astype(np.int64)) != 0
    begins[1:] |= np.diff(threads[order].astype(np.int64)) != 0
    group = np.cumsum(begins) - 1
    known, first = np.unique(group[launches[order]], return_index=True)
    numbers = np.full(len(order), -1)
    numbers[known] = np.arange(len(known))
    run = np.full(len(begin), -1)
    run[order] = numbers[group]
    return run, stacks[order[launches[order]][first]]


def _place(recording: RecordingData, stacks: list[int]) -> str:
    """Return the innermost function or line that all call stacks are in."""
    paths = [recording.call_stacks.user_frames(stack)[::-1] for stack in stacks]
    depth = 0
    while all(len(path) > depth and path[depth] == paths[0][depth] for path in paths):
        depth += 1
    after = {path[depth].name if len(path) > depth else "" for path in paths}
    if len(after) == 1 and (name := after.pop()):
        return "The program" if name == _MODULE else f"`{name}`"
    return text_of(paths[0][depth - 1]) if depth else "The program"
