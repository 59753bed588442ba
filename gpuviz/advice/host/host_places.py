"""What the host does while the GPU has nothing to do, and what to do about it."""

from dataclasses import dataclass

import numpy as np

from gpuviz.advice.evidence import Line
from gpuviz.advice.host_lines import text_of
from gpuviz.advice.source.libraries import MODULES_ON_THE_GPU
from gpuviz.analysis.sampled_work import Work
from gpuviz.data.call_stacks import Frame
from gpuviz.quantities import format_counted

# By the kind of work that was sampled; "": any other, or unknown.
_ADVICE = {
    "": (
        "Do this work on the GPU, or while the GPU works: launch the next work before it, or do it "
        "in another thread."
    ),
    "waiting": (
        "Let another thread wait here while the GPU works, and hand over what it waited for: a "
        "queue with the next few batches, for example."
    ),
    "gil": (
        "Only one thread of a process runs Python at a time: move the Python code of the other "
        "thread into a process, or launch the next work before it starts."
    ),
    "collection": (
        "Call `gc.freeze()` once the objects that stay exist, so that collections skip them, or "
        "`gc.disable()` before the loop and `gc.collect()` while the GPU works."
    ),
}
_UPLOAD_ADVICE = (
    "Keep the array on the GPU if the program has it there already or changes little of it. "
    "Otherwise compute or read it in pinned memory, made once with `cupyx.empty_pinned`, and "
    "upload it with `.set(...)` of an array on the GPU, which needs no copy on the host."
)
_ARGUMENT_ADVICE = (
    "If the array does not change, convert it once, before the loop (`jax.device_put` of JAX): a "
    "function of a library that is given a NumPy array copies it in each call."
)
_LOADER_ADVICE = (
    "Let processes load batches ahead, with `DataLoader(..., num_workers=4, "
    "persistent_workers=True)`, more of them, or a larger `prefetch_factor`; or make a batch "
    "cheaper to load."
)
_LAUNCHES_ADVICE = (
    "This is Python code of the library, which launches the GPU's work. Let the host run ahead of "
    "the GPU by waiting less, and shorten it by fewer, larger operations, `torch.compile` or a "
    "CUDA graph for example."
)


@dataclass(frozen=True, slots=True)
class HostPlace:
    """What the host does: the calls after it, how long it takes, and the idle time.

    Attributes:
        first: The line before it, or the line that was sampled.
        last: The line after it, or the same.
        host_ns: How long it takes before each of the calls.
        is_upload: Whether a library copies an array to pinned memory, to upload it.
        work: What was sampled; None if only the lines around it are known.
        lines: The lines that were sampled, with their times, longest first; empty if it is one.
        is_call: Whether these lines are in the call of the first line.
        makes_modules: Whether the host initializes modules of PyTorch, or copies them.
    """

    first: Line | Frame
    last: Line | Frame
    stacks: tuple[int, int]
    calls: np.ndarray
    idle_ns: int
    host_ns: np.ndarray
    is_upload: bool
    work: Work | None = None
    lines: tuple[Line, ...] = ()
    is_call: bool = False
    makes_modules: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether lines of the program were sampled at work."""
        work = self.work
        return work is not None and not work.loads and work.kind not in _ADVICE

    @property
    def text(self) -> str:
        """What the host does, after "while the host"."""
        if self.is_upload:
            return f"copies an array to pinned memory, to upload it, in {text_of(self.last)}"
        if self.work is None:
            return f"works {self._between}"
        if self.work.loads or self.work.is_wait:
            return f"is {self.work.text}"
        if self.lines:
            further = 0 if self.is_call else len(self.lines) - 1
            more = f" and {format_counted(further, 'more line', 'more lines')}" if further else ""
            return f"runs {text_of(self.first)}{more}"
        verb = "does" if self.work.kind == "collection" else "runs"
        return f"{verb} {self.work.text}"

    @property
    def advice(self) -> str:
        """What to do about it."""
        if self.is_upload:
            is_native = self.work is not None and self.work.is_native
            return _ARGUMENT_ADVICE if is_native else _UPLOAD_ADVICE
        if self.work is not None and self.work.loads:
            return _LOADER_ADVICE
        if self.makes_modules:
            return MODULES_ON_THE_GPU
        if self.work is not None and self.work.is_of_launches:
            return _LAUNCHES_ADVICE
        return _ADVICE.get("" if self.work is None else self.work.kind, _ADVICE[""])

    @property
    def _between(self) -> str:
        before, after = text_of(self.first), text_of(self.last)
        if self.first == self.last:
            # A line that runs again and again has the same stacks before and after either.
            return f"within or between the runs of {before}"
        return f"between {before} and {'the next ' if self._is_next_round else ''}{after}"

    @property
    def _is_next_round(self) -> bool:
        """Whether the second line is before the first in its function, as in a loop."""
        lines = [getattr(each, "line", 0) for each in (self.first, self.last)]
        return lines[1] < lines[0]
