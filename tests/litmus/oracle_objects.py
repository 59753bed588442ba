"""Streams, blocks, events and graphs of a litmus program, as the oracle knows them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# The strongest mode of an operation at a byte, whether its extent is known, and where accesses of
# unknown extent begin.
ByteAccess = tuple[str, bool, frozenset[int]]


@dataclass
class Block:
    """One allocation."""

    name: str
    address: int
    bytes: int
    allocated_by: str | None
    stream: str | None
    how: str
    is_pinned: bool = False
    is_live: bool = True
    freed_by: str | None = None
    freed_async: bool = False
    allocation: int | None = None
    recorded: list[str] = field(default_factory=list)
    events: int = 0
    free_action: int = 0


@dataclass
class Stream:
    """One stream, in a program or in a capture."""

    name: str
    kind: str
    device: int = 0
    actions: list[int] = field(default_factory=list)
    waits: int = 0


@dataclass
class Accessed:
    """An operation that accessed a block."""

    id: str
    action: int
    where: str
    block: Block
    bytes: dict[int, ByteAccess]


@dataclass
class Doubt:
    """A conflict whose first operation waits for a value that may be written after the second."""

    key: tuple[str, ...]
    byte: int
    is_required: bool
    first: int
    second: int


@dataclass
class Event:
    """What an event holds: actions of the program, or of a capture."""

    holds: int | None = None
    capture: "Capture | None" = None


class Actions:
    """Actions, and which of them are ordered before each."""

    def __init__(self) -> None:
        self.before: list[int] = []

    def add(self, before: int) -> int:
        """Add an action; return its number."""
        self.before.append(self.closed(before))
        return len(self.before) - 1

    def closed(self, actions: int) -> int:
        """Return actions and everything ordered before them."""
        closed = actions
        for each in bits(actions):
            closed |= self.before[each]
        return closed

    def upto(self, actions: Iterable[int]) -> int:
        """Return the set of some actions and everything ordered before them."""
        return self.closed(sum(1 << each for each in actions))


@dataclass
class Capture:
    """A capture in progress, and its nodes."""

    origin: str
    actions: Actions = field(default_factory=Actions)
    streams: dict[str, Stream] = field(default_factory=dict)
    accesses: list[Accessed] = field(default_factory=list)
    is_open: bool = True

    def stream(self, name: str) -> Stream:
        return self.streams.setdefault(name, Stream(name, "non_blocking"))


@dataclass
class Graph:
    """An executable graph."""

    accesses: list[tuple[Block, dict[int, ByteAccess]]]
    launches: list[int] = field(default_factory=list)


def bits(actions: int) -> Iterator[int]:
    """Yield the actions of a set."""
    while actions:
        lowest = actions & -actions
        yield lowest.bit_length() - 1
        actions ^= lowest
