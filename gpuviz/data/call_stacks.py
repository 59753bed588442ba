"""Call stacks by id, with the user's frame of each."""

import re
from dataclasses import dataclass
from typing import Any

from gpuviz.data.implied_columns import GENERATED, OWN
from gpuviz.data.tables import Tables

# The file of the functions by which Python imports modules.
IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
NO_STACK = "(no call stack)"
# Before the line of forward work, for work of its backward pass.
BACKWARD_OF = "backward of "
_NOWHERE = ("", "", 0)
# All but the last two parts of a path, in `function (file:line)`.
_FOLDERS = re.compile(r"(?<=\()[^()]*[/\\](?=[^()/\\]*[/\\][^()/\\]*:\d+\)$)")


@dataclass(frozen=True, slots=True)
class Frame:
    """One call in a call stack.

    ``source`` is the line's text, empty if unknown; ``line`` is -1 or 0 if unknown. ``installed``
    says whose code it is: that of the program's own files, of Python or an installed package, or
    code that was generated while the program ran.
    """

    name: str
    filename: str
    line: int
    cell: int
    source: str
    installed: int = OWN

    @property
    def site(self) -> str:
        """The text ``function (file:line)``; the name alone if there is no file."""
        return f"{self.name} ({self.filename}:{max(self.line, 0)})" if self.filename else self.name

    @property
    def is_installed(self) -> bool:
        """Whether the code is not that of the program's own files."""
        return self.installed != OWN


class CallStacks:
    """The call stacks of a recording, by id; id 0 is the empty stack."""

    def __init__(self, tables: Tables) -> None:
        columns = tables["frames"].to_pydict()
        fields = ("name", "filename", "line", "cell", "source", "installed")
        rows = zip(*(columns[each] for each in fields), strict=True)
        frames = {number: Frame(*row) for number, row in zip(columns["id"], rows, strict=True)}
        self._torch_frames = {
            # torch has an unknown line as -1 in an unsigned number.
            number: {"name": frame.name, "filename": frame.filename, "line": frame.line % (1 << 64)}
            for number, frame in frames.items()
        }
        self._frames = frames
        stacks = tables["stacks"].to_pydict()
        self._stacks: dict[int, list[int]] = dict(
            zip(stacks["id"], stacks["frames"], strict=True),
        )
        self._user_frames: dict[int, int] = dict(
            zip(stacks["id"], stacks["user_frame"], strict=True),
        )
        places = zip(stacks["module"], stacks["phase"], stacks["forward_frame"], strict=True)
        self._places: dict[int, tuple[str, str, int]] = {
            number: place for number, place in zip(stacks["id"], places, strict=True) if any(place)
        }

    def frames(self, stack: int) -> list[Frame]:
        """Return the frames of a stack, innermost first."""
        return [self._frames[number] for number in self._stacks.get(stack, []) if number]

    def torch_frames(self, stack: int) -> list[dict[str, Any]]:
        """Return the frames of a stack in torch's form; the result must not be modified."""
        return [self._torch_frames[number] for number in self._stacks.get(stack, []) if number]

    def user_frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack in the program's own files, innermost first.

        Those of generated code if there are no others, as in a program of ``python -c``.
        """
        frames = self.frames(stack)
        own = tuple(each for each in frames if not each.is_installed)
        return own or tuple(each for each in frames if each.installed == GENERATED)

    def user_frame(self, stack: int) -> Frame | None:
        """Return the innermost frame of the program's own files, else the innermost of all."""
        return self._frames.get(self.user_frame_number(stack))

    def user_frame_number(self, stack: int) -> int:
        """Return the id in ``frames`` of the user's frame; 0 without one."""
        return self._user_frames.get(stack, 0)

    def call_site(self, stack: int) -> tuple[str, str]:
        """Return the ``site`` and ``source`` of the user's frame; `NO_STACK` without one.

        Of the work of a backward pass, it is that of the forward work, if that is known.
        """
        undone = self._forward_frame(stack)
        if undone is not None:
            return f"{BACKWARD_OF}{undone.site}", undone.source
        frame = self.user_frame(stack)
        return (frame.site, frame.source) if frame else (NO_STACK, "")

    def has_forward_line(self, stack: int) -> bool:
        """Return whether a stack is of a backward pass whose forward work is known."""
        return self._forward_frame(stack) is not None

    def _forward_frame(self, stack: int) -> Frame | None:
        return self._frames.get(self._places.get(stack, _NOWHERE)[2])

    def module(self, stack: int) -> str:
        """Return the path of the module that a stack is in; empty if unknown or in none."""
        return self._places.get(stack, _NOWHERE)[0]

    def phase(self, stack: int) -> str:
        """Return the part of a training step; empty if it is another one, or unknown."""
        return self._places.get(stack, _NOWHERE)[1]


def short_site(site: str) -> str:
    """Return a call site without all but the last two parts of its path."""
    return _FOLDERS.sub("", site)
