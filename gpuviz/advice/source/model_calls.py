"""Calls of models in a training program, and the backward passes between them."""

import re
from dataclasses import dataclass

import numpy as np

from gpuviz.analysis.launches import phases_of
from gpuviz.data.call_stacks import Frame
from gpuviz.data.codes import ACTIONS, PHASES
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData

# The function of torch that calls a module.
_MODULE_CALL = "Module._wrapped_call_impl"
# Where torch begins a backward pass, and where it computes again what a checkpoint did not keep.
_AUTOGRAD = re.compile(r"torch[/\\]autograd[/\\]\w+\.py$")
_CHECKPOINT = re.compile(r"torch[/\\]utils[/\\]checkpoint\.py$")
_FORWARD, _BACKWARD = map(PHASES.index, ("forward", "backward"))


@dataclass(frozen=True, eq=False, slots=True)
class ModelCalls:
    """The calls of outermost modules, in the order in which they began.

    A model that a module calls is a part of that module's call, however often it is called.

    Attributes:
        begin: When each did its first work, in ns.
        stack: The call stack of this work.
        backward: How many backward passes had begun before it.
    """

    begin: np.ndarray
    stack: np.ndarray
    backward: np.ndarray


def model_calls(recording: RecordingData) -> ModelCalls:
    """Return the calls of models; none if several threads make forward passes.

    Between two calls of one line something else is done, such as the loss: if not, they are one.
    """
    begin, thread, stack = _work(recording)
    phase = phases_of(recording.tables, stack)
    threads = np.unique(thread[phase == _FORWARD])
    own = np.flatnonzero((phase == _BACKWARD) | np.isin(thread, threads))
    begin, stack, phase = begin[own], stack[own], phase[own]
    outer = _callers(recording, stack)
    is_first = (outer != 0) & (phase == _FORWARD)
    is_first[1:] &= outer[1:] != outer[:-1]
    is_backward = phase == _BACKWARD
    backward = np.cumsum(is_backward & ~np.append(False, is_backward)[: len(phase)])
    first = np.flatnonzero(is_first) if len(threads) == 1 else np.zeros(0, np.int64)
    return ModelCalls(begin[first], stack[first], backward[first])


def are_in_models(recording: RecordingData, stacks: np.ndarray) -> np.ndarray:
    """Return whether each call stack is in a call of a model."""
    inside: np.ndarray = _callers(recording, stacks) != 0
    return inside


def recomputed_modules(recording: RecordingData) -> frozenset[str]:
    """Return the paths of modules whose forward pass runs again within a backward pass.

    In their call stacks, a module is called, or a checkpoint runs, within torch's backward pass. A
    backward pass that a module's method starts is no such call.
    """
    stacks = recording.tables["stacks"]
    ids = plain(stacks["id"])[codes(stacks["phase"], PHASES) == _BACKWARD].tolist()
    known = recording.call_stacks
    return frozenset(
        module
        for stack in ids
        if (module := known.module(stack)) and _runs_again(known.frames(stack))
    )


def is_of_autograd(frame: Frame) -> bool:
    """Return whether a frame is a function of torch that runs a backward pass or a part of it."""
    return _AUTOGRAD.search(frame.filename) is not None


def _runs_again(frames: list[Frame]) -> bool:
    """Return whether a module or a checkpoint is called within the outermost backward pass."""
    starts = [place for place, frame in enumerate(frames) if is_of_autograd(frame)]
    return any(
        frame.name == _MODULE_CALL or _CHECKPOINT.search(frame.filename)
        for frame in frames[: starts[-1] if starts else 0]
    )


def caller(recording: RecordingData, stack: int) -> Frame | None:
    """Return the program's line that calls the model in a call stack; None if it calls none."""
    outside = _outside(recording, stack) or ()
    return next((frame for frame in outside if not frame.is_installed), None)


def _outside(recording: RecordingData, stack: int) -> tuple[Frame, ...] | None:
    """Return the frames around the call of the outermost module; None without one."""
    frames = recording.call_stacks.frames(stack)
    calls = [place for place, frame in enumerate(frames) if frame.name == _MODULE_CALL]
    return tuple(frames[calls[-1] + 1 :]) if calls else None


def _work(recording: RecordingData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return when allocations and CUDA calls began, and their threads and call stacks, by time."""
    events, calls = recording.tables["memory_events"], recording.tables["api_calls"]
    events = events.slice(recording.manifest.initial_events)
    is_allocation = codes(events["action"], ACTIONS) == ACTIONS.index("alloc")
    columns = [
        np.concatenate([plain(events[name])[is_allocation], plain(calls[name])])
        for name in ("time", "thread", "stack")
    ]
    known = np.flatnonzero(columns[2] != 0)
    order = known[np.argsort(columns[0][known], kind="stable")]
    begin, thread, stack = (column[order] for column in columns)
    return begin, thread, stack


def _callers(recording: RecordingData, stacks: np.ndarray) -> np.ndarray:
    """Return a number for each stack, equal for calls of models in the same place; 0 of others."""
    distinct, rows = np.unique(stacks, return_inverse=True)
    numbers: dict[tuple[Frame, ...], int] = {}
    found = []
    for stack in distinct.tolist():
        outside = _outside(recording, stack)
        number = 0 if outside is None else numbers.setdefault(outside, len(numbers) + 1)
        found.append(number)
    of_rows: np.ndarray = np.array(found, np.int64)[rows.ravel()]
    return of_rows
