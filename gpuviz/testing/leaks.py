"""GPU memory that a test leaves allocated, by call stack."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from gpuviz.analysis.lifetimes import lifetimes

if TYPE_CHECKING:
    from gpuviz.recording import Recording

# Functions of pytest that run a test. What calls them differs between warm-ups and the test.
_RUNS_TEST = ("pytest_pyfunc_call", ".runtest")


class StackFrame(NamedTuple):
    """One call of a stack."""

    function: str
    filename: str
    lineno: int


class Stack(NamedTuple):
    """A call stack that allocated memory, from the most recent call to the test function."""

    frames: tuple[StackFrame, ...]


class Leak(NamedTuple):
    """Memory that one call stack left allocated.

    Attributes:
        stack: The call stack.
        id: The same as an id of the recording's table ``stacks``.
        bytes: Bytes left, less the bytes of earlier runs' blocks that it replaced.
    """

    stack: Stack
    id: int
    bytes: int


class _Block(NamedTuple):
    place: tuple[int, int]
    stack: int
    size: int
    is_own: bool
    is_live: bool


# The call stacks of blocks that exist, by device and address.
Owners = dict[tuple[int, int], Stack]


def owners(recording: "Recording", known: Owners) -> Owners:
    """Return the call stacks of the blocks that exist at the end of a recording.

    Args:
        recording: The recording.
        known: Those of the blocks that existed at its start.
    """
    live = [block for block in _blocks(recording) if block.is_live]
    own = {block.place: _stack(recording, block.stack) for block in live if block.is_own}
    kept = {block.place for block in live if not block.is_own} & known.keys()
    return {place: known[place] for place in kept} | own


def leaks(recording: "Recording", known: Owners) -> list[Leak]:
    """Return what each call stack of a recording left allocated, most bytes first.

    A block that replaces one that the same call stack allocated in an earlier run is no leak.

    Args:
        recording: The recording.
        known: The call stacks of the blocks that existed at its start.
    """
    left = defaultdict[Stack, int](int)
    ids = dict[Stack, int]()
    for block in _blocks(recording):
        if block.is_own and block.is_live:
            stack = _stack(recording, block.stack)
            ids[stack] = block.stack
            left[stack] += block.size
        elif not block.is_own and not block.is_live and block.place in known:
            left[known[block.place]] -= block.size
    found = [Leak(stack, ids[stack], size) for stack, size in left.items() if size > 0]
    return sorted(found, key=lambda leak: -leak.bytes)


def _blocks(recording: "Recording") -> Iterator[_Block]:
    blocks = lifetimes(recording)
    count = recording.tables["memory_events"].num_rows
    initial = recording.manifest.initial_events
    columns = (blocks.alloc, blocks.free, blocks.device, blocks.address, blocks.stack, blocks.size)
    for alloc, free, device, address, stack, size in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        yield _Block((device, address), stack, size, alloc >= initial, free >= count)


def _stack(recording: "Recording", number: int) -> Stack:
    frames = []
    for each in recording.call_stacks.frames(number):
        if each.name.endswith(_RUNS_TEST):
            break
        frames.append(StackFrame(each.name, each.filename, each.line))
    return Stack(tuple(frames))
