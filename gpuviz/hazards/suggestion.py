"""The fix of a hazard as lines to add to the program, beside those that are there."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpuviz.data.stream_handle import DEFAULT_STREAM

if TYPE_CHECKING:
    from gpuviz.hazards.hazard import EventInLines, Hazard, HazardOperation

Streams = Literal["one", "several", "in turns"]

_FIRST, _SECOND, _STREAM, _EVENT = "first_stream", "second_stream", "stream", "event"
_ALLOCATING = "allocating_stream"
_OF_BEFORE = "  # of the iteration before"
# Lines that do nothing but record an event or wait for it, which can be moved.
_NAME = r"[\w.\[\]]+"
_RECORD = re.compile(rf"({_NAME} = )?{_NAME}\.record\(({_NAME})?\)")
_WAIT = re.compile(rf"{_NAME}\.wait(_event)?\(({_NAME})?\)")


@dataclass(frozen=True, slots=True)
class _Place:
    """A line of the program, and what to add before or after it, or whether to remove it."""

    site: str
    source: str
    before: str = ""
    after: str = ""
    is_removed: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        line = f"{'-' if self.is_removed else ' '} {self.source}"
        before, after = (f"+ {added}" if added else "" for added in (self.before, self.after))
        return tuple(each for each in (f"@@ {self.site}", before, line, after) if each)


def suggestion(
    hazard: "Hazard", first: "HazardOperation", second: "HazardOperation", streams: Streams = "one"
) -> tuple[str, ...]:
    """Return the lines of a change, in the manner of a diff; none if the places are not known.

    Streams are called by the names that the program gave them, or by the variables of the lines
    that made them; those without either have names of their own there.

    Args:
        hazard: The hazard.
        first: The last operation that must come before.
        second: The earliest one that must come after it.
        streams: Whether the lines are of one pair of streams, of one and several that wait for it,
            or of streams that take turns.
    """
    return tuple(line for place in _places(hazard, first, second, streams) for line in place.lines)


def _places(
    hazard: "Hazard", first: "HazardOperation", second: "HazardOperation", streams: Streams
) -> tuple[_Place, ...]:
    is_known = first.source and second.source and not second.is_before_site
    if not is_known or hazard.workspace:
        return ()
    if hazard.misplaced is not None:
        return _of_event(hazard.misplaced, first, second)
    if second.is_of_host:
        wait = f"{_variable(first, _FIRST)}.synchronize()"
        return (_Place(second.site, second.source, wait),)
    if hazard.kind in ("RAW", "WAR", "WAW"):
        return _of_new_event(first, second, streams)
    is_free = hazard.kind == "use_after_free" and second.mode == "frees"
    return _of_free(hazard, first, second) if is_free else ()


def _of_free(
    hazard: "Hazard", first: "HazardOperation", second: "HazardOperation"
) -> tuple[_Place, ...]:
    """Return the wait before a line that frees memory, or after the use in a function that does."""
    using = _variable(first, _FIRST)
    wait = f"{_variable(second, _ALLOCATING)}.wait_event({using}.record())"
    if hazard.memory == "pinned" or first.where == second.where:
        wait = f"{using}.synchronize()"
    if hazard.is_freed_by_return:
        return (_Place(first.site, first.source, after=wait),)
    return (_Place(second.site, second.source, wait),)


def _of_new_event(
    first: "HazardOperation", second: "HazardOperation", streams: Streams
) -> tuple[_Place, ...]:
    using, waiting = _variable(first, _FIRST), _variable(second, _SECOND)
    if streams == "several":
        waiting = _SECOND
    if streams == "in turns" or first.site == second.site:
        # Both are the stream of that iteration.
        stream = using if streams == "one" and using == waiting else _STREAM
        record, wait = f"{_EVENT} = {stream}.record()", f"{stream}.wait_event({_EVENT}){_OF_BEFORE}"
        if first.site == second.site:
            return (_Place(first.site, first.source, wait, record),)
        return (
            _Place(second.site, second.source, wait),
            _Place(first.site, first.source, after=record),
        )
    if waiting == using:
        using, waiting = _FIRST, _SECOND
    if not _is_before(first.site, second.site):
        # A name for the event would not be known there.
        return (_Place(second.site, second.source, f"{waiting}.wait_event({using}.record())"),)
    return (
        _Place(first.site, first.source, after=f"{_EVENT} = {using}.record()"),
        _Place(second.site, second.source, f"{waiting}.wait_event({_EVENT})"),
    )


def _is_before(site: str, other: str) -> bool:
    """Return whether a line is before another one of the same function."""
    (function, _, line), (other_function, _, other_line) = (
        each.rstrip(")").rpartition(":") for each in (site, other)
    )
    is_one = function == other_function and line.isdecimal() and other_line.isdecimal()
    return is_one and int(line) < int(other_line)


def _of_event(
    event: "EventInLines", first: "HazardOperation", second: "HazardOperation"
) -> tuple[_Place, ...]:
    """Return how to move the line that records an event, or that waits for it."""
    record, wait = event.record_source, event.wait_source
    # Elsewhere the names in the line may be others.
    functions = {each.rpartition(":")[0] for each in (event.record, event.wait)}
    functions |= {each.site.rpartition(":")[0] for each in (first, second)}
    if len(functions) > 1 or first.site == second.site:
        return ()
    if event.mistake == "early" and _RECORD.fullmatch(record):
        return (
            _Place(event.record, record, is_removed=True),
            _Place(first.site, first.source, after=record),
        )
    if event.mistake == "late" and _WAIT.fullmatch(wait):
        return (
            _Place(second.site, second.source, wait),
            _Place(event.wait, wait, is_removed=True),
        )
    return ()


def _variable(operation: "HazardOperation", otherwise: str) -> str:
    if operation.stream == DEFAULT_STREAM and not operation.is_named:
        return DEFAULT_STREAM.replace(" ", "_")
    name = operation.stream if operation.is_named else operation.variable
    return name if name.isidentifier() else otherwise
