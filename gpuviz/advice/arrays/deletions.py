"""When a program can delete an array that it no longer needs, and what else keeps it until then."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, dropwhile, islice

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import is_of_backward, named
from gpuviz.advice.source.close_statements import (
    LOOPS,
    CloseStatements,
    Statement,
    close_statements,
    statements_around,
)
from gpuviz.advice.source.named_values import assigned
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import plain

BY_CALLER = " The caller must not keep it either, as in `f(make())`."
_ENTERS = ("__enter__", "__aenter__")
_ON_RETURN = " The generator must not keep it either: `del` after its `yield`."
_NAMED_LATER = " {} still names `{}`: take what it needs, such as the shape, before the `del`."
_INSTEAD = ("else", "elif", "except")
_VARIABLE = re.compile(r"\s*(\w+)\s*=(?!=)")
_WITHOUT_NAME = (
    " The generator must not keep it either until it goes on: yield it without a variable, as in "
    "`yield make()`."
)


@dataclass(frozen=True, slots=True)
class Deletion:
    """When arrays of a line can be deleted, for sentences.

    Attributes:
        variable: What has them, such as ``it``.
        after: The line that last uses them, or returns them.
        when: Where they can be deleted, such as ``after`` that line.
    """

    variable: str
    after: str
    when: str


def deletion(device: DeviceBlocks, blocks: np.ndarray) -> Deletion:
    """Return when blocks of a line can be deleted.

    If the line, or the one that a function returns them to, makes the next ones at the peak, those
    of before have to be deleted first: deleted right after they are made, the last would be lost.
    """
    lines = device.lines
    line, after, variable = lines.line_of(blocks), lines.after_last_use(blocks), "it"
    # The function that makes and uses an array cannot delete what it returns.
    is_over = device.at_peak[blocks].all() and not lines.are_held_at_peak(blocks)
    returned = lines.returned_to(blocks) if is_over else None
    if returned is not None:
        after, variable = named(returned.site, returned.source), returned.variable
    is_of_pass = is_of_backward(after)
    if is_of_pass and device.recording.call_stacks.phase(line.stack) != "backward":
        # Autograd frees what nothing else keeps.
        when = "before the backward pass begins, which keeps what it needs"
    elif lines.is_at_peak(line.site if returned is None else returned.site) and (
        returned is not None or device.is_used_only_when_made[blocks].all()
    ):
        when = f"before {after} makes the next one, or write the next one into it"
    elif lines.is_used_again_by_its_last_line(int(blocks[-1])):
        when = f"after {'its' if len(blocks) == 1 else 'their'} last use in {after}"
    else:
        when = f"after {after}"
    return Deletion(variable, after, when)


def named_later(device: DeviceBlocks, block: int) -> str:
    """Return what to do about a later line that names an array after its last use; empty if none.

    Such as for its shape: the line would fail without the variable. That counts where the function
    that uses the array last has assigned it to a name, up to where it assigns to the name again.
    """
    recording, number = device.recording, int(device.number[block])
    stacks = recording.call_stacks
    used = stacks_of(recording.tables, device.used.last[number : number + 1])
    makers = {_function(each): each.source for each in stacks.user_frames(device.stack[block])}
    user = next(
        (each for each in stacks.user_frames(int(used[0])) if _function(each) in makers), None
    )
    name = _VARIABLE.match(makers[_function(user)]) if user is not None else None
    if user is None or name is None:
        return ""
    close = statements_around(recording, user)
    if name[1] in assigned(close.line):
        return ""
    mention = re.compile(rf"(?<![.\w]){name[1]}\b(?!\s*=[^=])")
    for each in _later(close):
        if mention.search(f"{each.head} {each.text}"):
            shown = each.text
            if each.keyword:
                shown = f"{each.keyword} {each.head}".rstrip() + f": {each.text}"
            goes_on = each.text.startswith(("del ", "return", "yield"))
            return "" if goes_on else _NAMED_LATER.format(named("", shown.strip()), name[1])
        if name[1] in assigned(each):
            return ""
    return ""


def _later(close: CloseStatements) -> Iterator[Statement]:
    """Yield the statements after a line in its round, without what runs instead of it."""
    line, skipped = close.line, None
    least = line.indentation + bool(line.keyword)
    after = dropwhile(lambda each: each is not line, close.of_round)
    for each in islice(after, 1, None):
        if skipped is not None and each.indentation > skipped:
            continue
        skipped = None
        if each.indentation < least and each.keyword in _INSTEAD:
            skipped = each.indentation
            continue
        least = min(least, each.indentation)
        yield each


def _function(frame: Frame) -> tuple[str, str, int]:
    return frame.name, frame.filename, frame.cell


def is_deleted_in_round(device: DeviceBlocks, stack: int) -> bool:
    """Return whether each round of a loop deletes the variable of the array that it makes.

    That of a list of them does not count.

    Args:
        device: All blocks.
        stack: The call stack of the array's allocation.
    """
    for frame in device.recording.call_stacks.user_frames(stack):
        close = statements_around(device.recording, frame)
        is_in_loop = bool(close.of_round) and close.of_round[0].keyword in LOOPS
        if is_in_loop and " for " not in close.line.text:
            deleted = {
                name
                for part in chain.from_iterable(each.parts for each in _later(close))
                for name in re.findall(r"\w+", part.removeprefix("del "))
                if part.startswith("del ")
            }
            if deleted & set(assigned(close.line)):
                return True
    return False


def is_of_with_block(device: DeviceBlocks, line: Line) -> bool:
    """Return whether a `with` statement makes arrays of a line, and keeps them until it ends.

    Either ``__enter__`` makes them itself, or the function that it calls, as `contextlib` does. If
    the peak is within that function, it can delete them itself.
    """
    stacks = device.recording.call_stacks
    maker = stacks.user_frame(line.stack)
    frames = stacks.frames(line.stack)
    if maker is None or maker not in frames or _goes_on(device, maker.name, maker.filename):
        return False
    place = frames.index(maker)
    return any(each.name.rpartition(".")[2] in _ENTERS for each in frames[place : place + 2])


def _goes_on(device: DeviceBlocks, name: str, filename: str) -> bool:
    """Return whether the peak is reached in a function, or in what it calls."""
    frames = device.recording.call_stacks.frames(device.lines.peak_stack)
    return any((each.name, each.filename) == (name, filename) for each in frames)


def generator_advice(device: DeviceBlocks, line: Line) -> str:
    """Return what a generator must do whose line makes arrays and yields them; empty if none does.

    What it has yielded is in its variable until it goes on, which is too late for a peak that the
    caller reaches in the meantime.
    """
    frames = device.recording.tables["frames"]
    number = device.recording.call_stacks.user_frame_number(line.stack)
    for row in np.flatnonzero(plain(frames["id"]) == number)[:1].tolist():
        frame = {name: frames[name][row].as_py() for name in frames.column_names}
        if frame["source"] == line.source and close_statements(frame).is_yielded:
            goes_on = _goes_on(device, frame["name"], frame["filename"])
            return _ON_RETURN if goes_on else _WITHOUT_NAME
    return ""
