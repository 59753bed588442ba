"""The fix of a hazard as lines to add to the program, beside those that are there."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuviz.hazards.hazard import EventInLines, Hazard, HazardOperation

_FIRST, _SECOND, _EVENT = "first_stream", "second_stream", "event"
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


def suggestion(hazard: "Hazard") -> tuple[str, ...]:
    """Return the lines of a change, in the manner of a diff; none if the places are not known.

    Streams are called by the names that the program gave them, or by the variables of the lines
    that made them; those without either have names of their own there.
    """
    return tuple(line for place in _places(hazard) for line in place.lines)


def _places(hazard: "Hazard") -> tuple[_Place, ...]:
    first, second = hazard.first, hazard.second
    if not (first.source and second.source) or hazard.workspace:
        return ()
    if hazard.misplaced is not None:
        return _of_event(hazard.misplaced, first, second)
    using = _variable(first, _FIRST)
    synchronized = _Place(second.site, second.source, f"{using}.synchronize()")
    if second.is_of_host:
        return () if second.is_before_site else (synchronized,)
    if hazard.kind in ("RAW", "WAR", "WAW"):
        return _of_new_event(first, second)
    is_free = hazard.kind == "use_after_free" and second.mode == "frees"
    return (synchronized,) if is_free else ()


def _of_new_event(first: "HazardOperation", second: "HazardOperation") -> tuple[_Place, ...]:
    using, waiting = _variable(first, _FIRST), _variable(second, _SECOND)
    if waiting == using:
        using, waiting = _FIRST, _SECOND
    record, wait = f"{_EVENT} = {using}.record()", f"{waiting}.wait_event({_EVENT})"
    if first.site == second.site:
        return (_Place(first.site, first.source, f"{wait}  # of the iteration before", record),)
    return (
        _Place(first.site, first.source, after=record),
        _Place(second.site, second.source, wait),
    )


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
    name = operation.stream if operation.is_named else operation.variable
    return name if name.isidentifier() else otherwise
