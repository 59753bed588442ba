"""Memory of a library that one of its objects uses each time, such as the work area of a plan."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuviz.data.call_stacks import CallStacks


@dataclass(frozen=True, slots=True)
class Workspace:
    """What a block is for, and what to change if two streams use it.

    Attributes:
        name: What it is called.
        fix: How each stream gets its own.
    """

    name: str
    fix: str


# By the line of an installed package that allocates it.
_KNOWN = (
    (
        re.compile(r"\bcufft\.Plan(1d|Nd)\("),
        Workspace(
            "the work area of an FFT plan",
            "CuPy caches one plan for each shape, and a plan has one work area. Let one stream "
            "wait for the other before it uses the plan. Another call of get_fft_plan returns the "
            "same plan while the cache has it.",
        ),
    ),
)


def workspace(stacks: "CallStacks", stack: int) -> Workspace | None:
    """Return what the block that a call stack allocated is for; None if it is not such memory."""
    for frame in stacks.frames(stack):
        if not frame.is_installed:
            return None
        for line, known in _KNOWN:
            if line.search(frame.source):
                return known
    return None
