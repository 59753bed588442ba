"""The lines of a program that run backward passes."""

import numpy as np

from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.touches import Touches
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_MODES = DICTIONARIES["launch_blocks", "mode"]
_READ, _WRITE = map(_MODES.index, ("read", "write"))
_AUTOGRAD = "/torch/autograd/__init__.py"
_CHECKPOINT, _REENTRANT = "/torch/utils/checkpoint.py", "CheckpointFunction.backward"
BACKWARD_CALL, GRAD_CALL = "backward", "grad"


class BackwardLines:
    """The lines of a program that call ``backward`` or ``grad`` of PyTorch, numbered.

    Of passes within passes, as checkpoints have, the outer one counts. Work of no backward pass has
    a number of its own.
    """

    def __init__(self, recording: RecordingData) -> None:
        self._stacks = recording.call_stacks
        self._known: dict[tuple[str, Frame | None], int] = {}
        self._of_stack: dict[int, int] = {}

    def of_stacks(self, stacks: np.ndarray) -> np.ndarray:
        """Return the number of the line whose backward pass each call stack is in."""
        numbers, first = numbered(stacks)
        lines = [self._of(stack) for stack in stacks[first].tolist()]
        found: np.ndarray = np.array(lines, np.int64)[numbers]
        return found

    def called(self, line: int) -> str:
        """Return whether a line calls ``backward`` or ``grad``; empty of no backward pass."""
        return list(self._known)[line][0]

    def frame(self, line: int) -> Frame | None:
        """Return a line by its number; None if it is unknown."""
        return list(self._known)[line][1]

    def _of(self, stack: int) -> int:
        if stack not in self._of_stack:
            frames = self._stacks.frames(stack)
            of_torch = [at for at, frame in enumerate(frames) if _runs_backward(frame)]
            key: tuple[str, Frame | None] = ("", None)
            if of_torch:
                outer = frames[of_torch[-1] + 1 :]
                line = next((frame for frame in outer if not frame.is_installed), None)
                key = frames[of_torch[-1]].name, line
            self._of_stack[stack] = self._known.setdefault(key, len(self._known))
        return self._of_stack[stack]


def compute_from_others(
    recording: RecordingData, used: Touches, is_workspace: np.ndarray
) -> np.ndarray:
    """Return which uses compute something else from what a backward pass made before.

    The pass of another line, or of the same one, begins with such gradients, or goes on from those
    of a result in between. It does not only add to them: it writes another array, as far as is
    known. Of work of the same call stack that is known only if it is known to read them: it may
    just make them.

    Args:
        recording: The recording.
        used: The uses.
        is_workspace: Which of them are of a library's workspace, whose contents nothing needs.
    """
    lines = BackwardLines(recording)
    stacks = plain(recording.tables["api_calls"]["stack"])
    line, own = lines.of_stacks(stacks), lines.of_stacks(used.blocks.stack)
    is_read = line[used.call] != own[used.block]
    is_read |= stacks[used.call] != used.blocks.stack[used.block]
    is_read |= used.mode == _READ
    may_write = (used.mode != _READ) & ~is_workspace
    of_call = np.bincount(used.call, may_write, len(stacks))
    pairs = np.stack([used.call, used.block])
    number = np.unique(pairs, axis=1, return_inverse=True)[1].ravel()
    of_block = np.bincount(number, may_write)
    found: np.ndarray = is_read & (used.mode != _WRITE)
    found &= of_call[used.call] > of_block[number]
    return found


def _runs_backward(frame: Frame) -> bool:
    return frame.filename.endswith(_AUTOGRAD) and frame.name in (BACKWARD_CALL, GRAD_CALL)


def has_reentrant_checkpoints(recording: RecordingData) -> bool:
    """Return whether reentrant checkpoints run, which need an input that requires a gradient.

    Libraries let the output of frozen embeddings require one for that.
    """
    frames = recording.tables["frames"]
    names, files = (frames[name].to_pylist() for name in ("name", "filename"))
    return any(
        name == _REENTRANT and file.endswith(_CHECKPOINT)
        for name, file in zip(names, files, strict=True)
    )
