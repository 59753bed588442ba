"""Lines of the program whose values decide what it does next."""

import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from gpuviz.data.implied_columns import OWN, assigned_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpuviz.data.recording_data import RecordingData

# Lines before and after a line that are close to it.
_CLOSE = 8
# Statements that branch on the value of an expression.
_BRANCH = re.compile(r"\s*(while|if|elif|assert)\b(?P<value>.*)")
_RETURN = re.compile(r"\s*(?:def\b.*?:\s*)?return\b(?P<value>.*)")
_INDEX = re.compile(r"[^#]*?[\w)\]]\[(?P<value>.*)\]")
# Statements that put a value into a container: `errors.append(...)`, `errors[i] = ...`.
_STORE = re.compile(r"(?:\w+\.)*(?P<name>\w+)(?:\.append\(|\[[^\]]*\]\s*=(?!=))")


def indexes(recording: "RecordingData", stack: int) -> bool:
    """Return whether the program chooses elements by what the line of a call stack computes.

    The line or a close one has its result, or the name that gets it, within brackets.
    """
    for frame, caller in pairwise(chain(_frames(recording, stack), [None])):
        assert frame is not None  # noqa: S101 - only the last caller is
        close = _close(frame)
        if _uses(_INDEX, close, _computed(frame["assigned"], close)):
            return True
        if caller is None or not _returns(frame):
            return False
    return False


def decides(recording: "RecordingData", stack: int) -> bool:
    """Return whether the program branches on what the line of a call stack computes.

    The line itself branches, or it assigns to a name by which a line close to it does, or to one
    from which that line's name is computed, or it puts the value into a container of which a line
    close to it compares an element. What a function returns is the value of the line that calls it;
    a library that gets the function itself, as a solver does, needs what it returns.
    """
    frames = _frames(recording, stack)
    for frame, caller in pairwise(chain(frames, [None])):
        assert frame is not None  # noqa: S101 - only the last caller is
        if _branches(frame):
            return True
        if caller is None or not _returns(frame):
            return False
        if caller["is_behind"] and _passes(caller["source"], frame["name"]):
            return True
    return False


def _frames(recording: "RecordingData", stack: int) -> "Iterator[dict[str, Any]]":
    """Yield the rows of the program's own frames from the user's frame on, innermost first.

    ``is_behind`` says whether a library calls what the one before is in.
    """
    user = recording.call_stacks.user_frame_number(stack)
    frames, stacks = recording.tables["frames"], recording.tables["stacks"]
    place = stacks["id"].index(stack).as_py()
    numbers = stacks["frames"][place].as_py() if place >= 0 else []
    numbers = numbers[numbers.index(user) :] if user in numbers else [user]
    is_behind = False
    for number in filter(None, numbers):
        row = frames["id"].index(number).as_py()
        if row < 0:
            return
        frame = {name: frames[name][row].as_py() for name in frames.column_names}
        if frame["installed"] == OWN or number == user:
            yield frame | {"is_behind": is_behind}
        is_behind = frame["installed"] != OWN


def _branches(frame: "dict[str, Any]") -> bool:
    if _BRANCH.match(frame["source"]):
        return True
    close = _close(frame)
    names = _computed(frame["assigned"], close)
    if _uses(_BRANCH, close, names):
        return True
    stored = _STORE.match(frame["source"])
    return stored is not None and _uses(_BRANCH, close, [stored["name"]], after=r"\[")


def _returns(frame: "dict[str, Any]") -> bool:
    """Return whether a function returns what a line of it computes.

    What it returns after a loop is that of the last round only.
    """
    if _RETURN.match(frame["source"]):
        return True
    close = _close(frame)
    own = next((_indentation(each) for each in close if each.strip() == frame["source"]), 0)
    of_block = [each for each in close if _indentation(each) >= own]
    return _uses(_RETURN, of_block, _computed(frame["assigned"], close))


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _close(frame: "dict[str, Any]") -> list[str]:
    """Return the lines close to that of a frame; none of unknown code."""
    place = frame["line"] - frame["context_line"]
    lines: list[str] = frame["context"].split("\n")
    return lines[max(place - _CLOSE, 0) : place + _CLOSE + 1]


def _computed(assigned: str, lines: "Iterable[str]") -> list[str]:
    """Return the names that a line assigns to, and those that lines compute from them."""
    names = [name for name in assigned.split(", ") if name]
    for line in lines if names else ():
        _, is_assignment, value = line.partition("=")
        if is_assignment and re.search(_any_of(names), value):
            names += [name for name in assigned_names(line.strip()).split(", ") if name]
    return names


def _uses(
    statement: "re.Pattern[str]", lines: "Iterable[str]", names: "list[str]", after: str = ""
) -> bool:
    """Return whether a statement of a kind has one of some names in its expression."""
    if not names:
        return False
    used = re.compile(_any_of(names) + after)
    found = map(statement.match, lines)
    return any(each is not None and used.search(each["value"]) for each in found)


def _any_of(names: "list[str]") -> str:
    return rf"\b({'|'.join(map(re.escape, names))})\b"


def _passes(source: str, name: str) -> bool:
    """Return whether a line names a function, such as ``Solver.residual``, and does not call it."""
    word = re.escape(name.rpartition(".")[2])
    return re.search(rf"\b{word}\b(?!\s*\()", source) is not None
