"""Lines that allocate and use arrays: those of helper functions give way to their callers."""

import re
from dataclasses import dataclass
from itertools import dropwhile, pairwise

import numpy as np

from gpuviz.analysis.grouping import numbered
from gpuviz.data.call_stacks import Frame
from gpuviz.data.recording_data import RecordingData

# A function with fewer callers is no helper.
_LEAST_CALLERS = 2
_RETURN = re.compile(r"\s*(?:def\s.*?:\s*)?return\b")


@dataclass(frozen=True, slots=True)
class Returned:
    """The line that got arrays from a function that it called.

    Attributes:
        site: Its call site.
        source: Its text.
        function: The name of the function.
    """

    site: str
    source: str
    function: str

    @property
    def variable(self) -> str:
        """The variable that gets what the function returns, in a sentence; ``it`` if unknown."""
        found = re.match(rf"\s*(\w+)\s*=\s*(?:\w+\.)*{re.escape(self.function)}\(", self.source)
        return f"`{found[1]}`" if found else "it"


class Callers:
    """The lines of the program that some blocks belong to.

    A function that the program calls from two lines or more, and that returns what it allocates, is
    a helper such as ``to_device``: the line that calls it decides about the array. It returns an
    array whose last use is outside of the function.

    Args:
        recording: The recording.
        allocated: The call stack of each allocation; 0 if unknown.
        used: The call stack of the last use of each block; 0 without one.
    """

    def __init__(self, recording: RecordingData, allocated: np.ndarray, used: np.ndarray) -> None:
        self._stacks = recording.call_stacks
        self._number, first = numbered(allocated, used)
        self._allocated: list[int] = allocated[first].tolist()
        self._used: list[int] = used[first].tolist()
        self._callers = self._called_from(sorted(set(self._allocated)))
        self._frames = list(map(self._frame, self._allocated, self._used))

    @property
    def numbers(self) -> np.ndarray:
        """A number for each block, equal for the same line."""
        sites: dict[str, int] = {}
        of_pairs = [sites.setdefault(_site(frame), len(sites)) for frame in self._frames]
        numbers: np.ndarray = np.array(of_pairs, np.int64)[self._number]
        return numbers

    def line(self, block: int) -> tuple[str, str] | None:
        """Return the call site and the source of a block's line; None if unknown."""
        frame = self._frames[int(self._number[block])]
        return None if frame is None else (frame.site, frame.source)

    def holding_line(self, block: int) -> tuple[str, str] | None:
        """Return the line that keeps a block: its line, or that to which functions return it.

        Where a ``return`` allocates, the array has no name. A library between a function and its
        caller may keep it, too.
        """
        number = int(self._number[block])
        held, used = self._frames[number], self._used[number]
        if held is None or not used:
            return self.line(block)
        every = self._stacks.frames(self._allocated[number])
        users = {_function(frame) for frame in self._stacks.frames(used)}
        for frame, caller in pairwise(every[every.index(held) :]):
            is_returned = _RETURN.match(frame.source) and _function(frame) not in users
            if not is_returned or caller.is_installed:
                break
            held = caller
        return held.site, held.source

    def line_of_use(self, block: int, stack: int) -> tuple[str, str]:
        """Return the call site and the source of a use, by the call stack of the use.

        It is the line of the function that made the block, or of the one that it was returned to,
        where a ``del`` or an allocation can be written, if the use is within a call from it.
        """
        number = int(self._number[block])
        frame = self._frames[number]
        if frame is not None and not self._stacks.has_forward_line(stack):
            users = self._stacks.user_frames(stack)
            makers = self._stacks.user_frames(self._allocated[number])
            first = makers.index(frame) if frame in makers else len(makers)
            for maker in range(first, len(makers)):
                user = _in_the_call_of(makers, maker, users)
                if user is not None:
                    return user.site, user.source
        return self._stacks.call_site(stack)

    def returned_to(self, blocks: np.ndarray, used: np.ndarray, later: int) -> Returned | None:
        """Return where functions returned blocks to after their last use.

        None unless all of them were returned to one line.

        Args:
            blocks: The blocks.
            used: The call stack of the last use of each.
            later: A call stack after that in the same thread, while they are allocated.
        """
        running = {_function(frame) for frame in self._stacks.user_frames(later)}
        found = np.unique(np.stack([self._number[blocks], used]), axis=1)
        lines = {self._returned_to(number, use, running) for number, use in found.T.tolist()}
        return lines.pop() if len(lines) == 1 else None

    def _returned_to(
        self, number: int, used: int, running: set[tuple[str, str]]
    ) -> Returned | None:
        frame, users = self._frames[number], map(_function, self._stacks.user_frames(used))
        if frame is None or _function(frame) in running or _function(frame) not in users:
            return None
        makers = self._stacks.user_frames(self._allocated[number])
        calls = pairwise(dropwhile(lambda maker: maker != frame, makers))
        return next(
            (
                Returned(outer.site, outer.source, inner.name)
                for inner, outer in calls
                if _function(outer) in running
            ),
            None,
        )

    def _called_from(self, stacks: list[int]) -> dict[tuple[str, str], set[str]]:
        """Return the lines that call each function of the program that allocates."""
        found: dict[tuple[str, str], set[str]] = {}
        for stack in stacks:
            own = self._stacks.user_frames(stack)
            for inner, outer in pairwise(own):
                found.setdefault(_function(inner), set()).add(outer.site)
        return found

    def _frame(self, allocated: int, used: int) -> Frame | None:
        own = self._stacks.user_frames(allocated)
        if not own:
            return self._stacks.user_frame(allocated)
        users = {_function(frame) for frame in self._stacks.frames(used)}
        for frame in own[:-1]:
            function = _function(frame)
            is_helper = len(self._callers.get(function, ())) >= _LEAST_CALLERS
            if not is_helper or not used or function in users:
                return frame
        return own[-1]


def _in_the_call_of(
    makers: tuple[Frame, ...], place: int, users: tuple[Frame, ...]
) -> Frame | None:
    """Return the frame of one of some calls in another call stack; None if it is not there.

    A function that calls itself is in the stack more than once, equally far from the outermost.
    """
    function = _function(makers[place])
    found = [user for user in users if _function(user) == function]
    level = len(makers) - place
    if len(found) > 1 and level <= len(users) and _function(users[-level]) == function:
        return users[-level]
    return found[0] if found else None


def _function(frame: Frame) -> tuple[str, str]:
    return frame.filename, frame.name


def _site(frame: Frame | None) -> str:
    return "" if frame is None else frame.site
