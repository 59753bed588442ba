"""Hazards with one cause: a missing wait, an event in the wrong place, one shared workspace."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuviz.hazards.fix import fix
from gpuviz.hazards.misplaced_events import Issued, event_uses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuviz.data.recording_data import RecordingData
    from gpuviz.hazards.hazard import Hazard, HazardOperation

# An event and a wait order them; memory that is freed or reused needs other changes.
_ORDERED = {"RAW", "WAR", "WAW"}


def of_one_wait(recording: "RecordingData", found: "Sequence[Hazard]") -> "list[HazardsOfOneWait]":
    """Return the hazards that the same change would order, in the order of the first of each."""
    groups: list[HazardsOfOneWait] = []
    for hazard in found:
        alone = HazardsOfOneWait(
            recording, [hazard], _issued(recording, hazard.first), _issued(recording, hazard.second)
        )
        group = next((each for each in groups if each.can_take(alone)), None)
        if group is None:
            groups.append(alone)
        else:
            group.take(alone)
    return groups


@dataclass(frozen=True, slots=True)
class _IssuedOperation:
    """An operation of a hazard, and when it was issued and on which stream; None if unknown."""

    operation: "HazardOperation"
    issued: Issued | None


def _issued(recording: "RecordingData", operation: "HazardOperation") -> _IssuedOperation:
    row = operation.activity
    stream = recording.tables["activities"]["stream"][row].as_py() if row >= 0 else 0
    return _IssuedOperation(operation, event_uses(recording).issued(row, stream))


class HazardsOfOneWait:
    """Hazards that one change would order.

    Attributes:
        hazards: The hazards, the first found first.
        last_first: The last of the first operations, which is ordered after all others of them.
        first_second: The earliest of the second operations.
    """

    def __init__(
        self,
        recording: "RecordingData",
        hazards: "list[Hazard]",
        last_first: _IssuedOperation,
        first_second: _IssuedOperation,
    ) -> None:
        self._uses = event_uses(recording)
        self.hazards = hazards
        self.last_first, self.first_second = last_first, first_second

    def can_take(self, other: "HazardsOfOneWait") -> bool:
        """Return whether one change would also order other hazards."""
        # Streams of the processes of a merged recording may have the same names.
        if self.hazards[0].device != other.hazards[0].device:
            return False
        causes = {
            (each.misplaced, each.workspace and (each.workspace, each.allocated))
            for each in (*self.hazards, *other.hazards)
        }
        if causes != {(None, "")}:
            return len(causes) == 1
        kinds = {each.kind for each in (*self.hazards, *other.hazards)}
        return kinds <= _ORDERED and self._is_ordered_with(other)

    def _is_ordered_with(self, other: "HazardsOfOneWait") -> bool:
        """Return whether an event after the last first operation orders those of both."""
        lasts = [self.last_first.issued, other.last_first.issued]
        seconds = [self.first_second.issued, other.first_second.issued]
        issued = [each for each in (*lasts, *seconds) if each is not None]
        if len(issued) < len(lasts) + len(seconds) or issued[2].stream != issued[3].stream:
            return False
        earlier, later = sorted(issued[:2], key=lambda each: each.time)
        is_before = later.time < min(each.time for each in issued[2:])
        return is_before and self._uses.orders(earlier, later)

    def take(self, other: "HazardsOfOneWait") -> None:
        """Add hazards that the same change orders."""
        self.hazards += other.hazards
        self.last_first = max(self.last_first, other.last_first, key=_time)
        self.first_second = min(self.first_second, other.first_second, key=_time)

    @property
    def fix(self) -> str:
        """What orders all of them."""
        hazard = self.hazards[0]
        if len(self.hazards) == 1 or hazard.misplaced or hazard.workspace:
            return hazard.fix
        last, first = self.last_first.operation, self.first_second.operation
        return fix(hazard.kind, last, first, "", "", device=hazard.device)


def _time(operation: _IssuedOperation) -> int:
    return -1 if operation.issued is None else operation.issued.time
