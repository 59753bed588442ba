"""Memory of a library that one of its objects uses each time, such as the work area of a plan."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpuviz.analysis.categories import block_categories
from gpuviz.analysis.processes import processes
from gpuviz.analysis.touches import touches
from gpuviz.data.call_stacks import CallStacks
from gpuviz.data.codes import CATEGORIES
from gpuviz.data.columns import plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named


@dataclass(frozen=True, slots=True)
class Workspace:
    """What a block is for, and what to change if two streams use it.

    Attributes:
        name: What it is called.
        fix: What orders the two streams.
    """

    name: str
    fix: str


_PLAN = Workspace(
    "the work area of an FFT plan",
    "CuPy caches one plan for each shape, and a plan has one work area. Let one stream wait for "
    "the other before it uses the plan. Another call of get_fft_plan returns the same plan while "
    "the cache has it.",
)
_GENERATOR = Workspace(
    "the state of a random generator",
    "A generator of CuPy has one state, which each kernel that draws numbers reads and writes. Let "
    "one stream wait for the other before it draws from the same generator.",
)
_LIBRARY = Workspace(
    "the workspace of a library",
    "The library uses this memory each time. Let one stream wait for the other before it calls "
    "the library.",
)
# The line of an installed package that allocates the work area of a plan.
_MAKES_PLAN = re.compile(r"\bcufft\.Plan(1d|Nd)\(")
# The line of CuPy that allocates what a routine of cuSOLVER, cuSPARSE or CUB needs during a call.
_MAKES_WORKSPACE = re.compile(r"\b(workspace|buff?|buffer)\s*=\s*_?cupy\.empty\(")
# CuPy's kernel that fills the state of a generator, which its compiled code allocates.
_FILLS_STATE = re.compile(r"\binit_curand\b")


def workspace(recording: RecordingData, block: int, stack: int) -> Workspace | None:
    """Return what memory is for, if a library uses it each time; else None.

    Args:
        recording: The recording.
        block: The row of ``memory_events`` that allocated the block; -1 for other memory.
        stack: The call stack that allocated it.
    """
    if is_of_plan(recording.call_stacks, stack):
        return _PLAN
    if block in _states_of_generators(recording):
        return _GENERATOR
    return _LIBRARY if block in _named_by_torch(recording) else None


def calling_routine(stacks: CallStacks, stack: int) -> str:
    """Return the function of a library that allocated memory for the time of a call; else empty.

    Args:
        stacks: The call stacks of the recording.
        stack: That of the allocation.
    """
    routine, is_workspace = "", False
    for frame in stacks.frames(stack):
        if not frame.is_installed:
            break
        is_workspace |= bool(_MAKES_WORKSPACE.search(frame.source))
        routine = frame.name
    return routine if is_workspace else ""


def is_of_plan(stacks: CallStacks, stack: int) -> bool:
    """Return whether a call stack allocates the work area of an FFT plan."""
    for frame in stacks.frames(stack):
        if not frame.is_installed:
            return False
        if _MAKES_PLAN.search(frame.source):
            return True
    return False


@Once
def _states_of_generators(recording: RecordingData) -> frozenset[int]:
    """Return the rows of ``memory_events`` that allocated the states of random generators."""
    return _rows_of_processes(recording, _states_of_process)


@Once
def _named_by_torch(recording: RecordingData) -> frozenset[int]:
    """Return the rows of ``memory_events`` that allocated what torch calls a workspace."""
    return _rows_of_processes(recording, _named_in_process)


def _states_of_process(recording: RecordingData) -> np.ndarray:
    used = touches(recording)
    if used is None:
        return np.zeros(0, np.int64)
    names = np.append(plain(recording.tables["activities"]["name"]), 0)[used.activity]
    is_fill = are_named(recording.tables, names, _FILLS_STATE.search)
    found: np.ndarray = used.blocks.alloc[used.block[is_fill]]
    return found


def _named_in_process(recording: RecordingData) -> np.ndarray:
    blocks, category = block_categories(recording)
    found: np.ndarray = blocks.alloc[category == CATEGORIES.index("workspace")]
    return found


def _rows_of_processes(
    recording: RecordingData, find: Callable[[RecordingData], np.ndarray]
) -> frozenset[int]:
    """Return rows of ``memory_events`` that were found in each process of a recording."""
    parts = processes(recording)
    if not parts:
        return frozenset(find(recording).tolist())
    found = [part.rows["memory_events"][find(part.recording)] for part in parts]
    return frozenset(np.concatenate(found).tolist())
