"""Optimizers of PyTorch in call stacks."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

_FILE = re.compile(r"torch[/\\]optim[/\\](?!optimizer\.py)\w+\.py$")
_STEP = re.compile(r"(\w+)\.step$")
# Its functions for all parameters at once, and for one after the other.
_AT_ONCE, _IN_TURN = "_multi_tensor_", "_single_tensor_"


@dataclass(frozen=True, slots=True)
class OptimizerStep:
    """A step of an optimizer, as far as a call stack shows it.

    Attributes:
        name: The class of ``torch.optim`` whose ``step`` runs, such as ``Adagrad``; empty of other
            optimizers. `AdamW` is ``Adam`` where it is a class derived from it.
        is_at_once: Whether a function for all parameters runs, as with ``foreach=True``.
        is_in_turn: Whether a function for one parameter after the other runs.
    """

    name: str
    is_at_once: bool
    is_in_turn: bool

    @property
    def has_fused(self) -> bool:
        """Whether PyTorch has a fused form of it for CUDA: of Adagrad, it has one for the CPU."""
        return self.name in {"Adam", "AdamW", "SGD"}


def optimizer_step(recording: "RecordingData", stack: int) -> OptimizerStep:
    """Return the step of an optimizer that a call stack is in."""
    frames = [
        frame
        for frame in recording.call_stacks.frames(stack)
        if frame.is_installed and _FILE.search(frame.filename)
    ]
    steps = filter(None, (_STEP.search(frame.name) for frame in frames))
    return OptimizerStep(
        name=next((found[1] for found in steps), ""),
        is_at_once=any(frame.name.startswith(_AT_ONCE) for frame in frames),
        is_in_turn=any(frame.name.startswith(_IN_TURN) for frame in frames),
    )
