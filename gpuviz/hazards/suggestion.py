"""The fix of a hazard as lines to add to the program, beside those that are there."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuviz.hazards.hazard import Hazard, HazardOperation

_FIRST, _SECOND, _EVENT = "first_stream", "second_stream", "event"


@dataclass(frozen=True, slots=True)
class _Place:
    """A line of the program, and what to add before or after it."""

    site: str
    source: str
    added: str
    is_after: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        line, added = f"  {self.source}", f"+ {self.added}"
        return (f"@@ {self.site}", *((line, added) if self.is_after else (added, line)))


def suggestion(hazard: "Hazard") -> tuple[str, ...]:
    """Return the lines of a change, in the manner of a diff; none if the places are not known.

    Streams are called by the names that the program gave them, or by the variables of the lines
    that made them; those without either have names of their own there.
    """
    return tuple(line for place in _places(hazard) for line in place.lines)


def _places(hazard: "Hazard") -> tuple[_Place, ...]:
    first, second = hazard.first, hazard.second
    if not (first.source and second.source) or hazard.misplaced or hazard.workspace:
        return ()
    using = _variable(first, _FIRST)
    if second.is_of_host:
        if second.is_before_site:
            return ()
        return (_Place(second.site, second.source, f"{using}.synchronize()"),)
    if hazard.kind in ("RAW", "WAR", "WAW"):
        waiting = _variable(second, _SECOND)
        if waiting == using:
            using, waiting = _FIRST, _SECOND
        return (
            _Place(first.site, first.source, f"{_EVENT} = {using}.record()", is_after=True),
            _Place(second.site, second.source, f"{waiting}.wait_event({_EVENT})"),
        )
    if hazard.kind == "use_after_free" and second.mode == "frees":
        added = f"{using}.synchronize()"
        return (_Place(second.site, second.source, added),)
    return ()


def _variable(operation: "HazardOperation", otherwise: str) -> str:
    name = operation.stream if operation.is_named else operation.variable
    return name if name.isidentifier() else otherwise
