"""Hazards with one cause: a missing wait, an event in the wrong place, one shared workspace."""

from typing import TYPE_CHECKING

from gpuviz.hazards.fix import fix

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
            [hazard], _issued(recording, hazard.first), _issued(recording, hazard.second)
        )
        group = next((each for each in groups if each.can_take(alone)), None)
        if group is None:
            groups.append(alone)
        else:
            group.take(alone)
    return groups


def _issued(
    recording: "RecordingData", operation: "HazardOperation"
) -> "tuple[int, HazardOperation]":
    """Return when an operation was launched, in ns, and the operation; -1 if unknown."""
    if operation.activity < 0:
        return -1, operation
    correlation = recording.tables["activities"]["correlation"][operation.activity].as_py()
    calls = recording.tables["api_calls"]
    row = calls["correlation"].index(correlation).as_py() if correlation else -1
    return (calls["time"][row].as_py() if row >= 0 else -1), operation


class HazardsOfOneWait:
    """Hazards that one change would order.

    Attributes:
        hazards: The hazards, the first found first.
        last_first: When the last of the first operations was launched, and the operation.
        first_second: The same for the earliest of the second operations.
    """

    def __init__(
        self,
        hazards: "list[Hazard]",
        last_first: "tuple[int, HazardOperation]",
        first_second: "tuple[int, HazardOperation]",
    ) -> None:
        self.hazards, self.last_first, self.first_second = hazards, last_first, first_second

    @property
    def streams(self) -> tuple[str, str]:
        """The streams of the first and of the second operations."""
        return self.hazards[0].first.where, self.hazards[0].second.where

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
        lasts, firsts = (
            (getattr(self, name)[0], getattr(other, name)[0])
            for name in ("last_first", "first_second")
        )
        is_known = kinds <= _ORDERED and min(*lasts, *firsts) >= 0
        same = self.streams == other.streams
        return is_known and same and max(lasts) < min(firsts)

    def take(self, other: "HazardsOfOneWait") -> None:
        """Add hazards that the same change orders."""
        self.hazards += other.hazards
        self.last_first = max(self.last_first, other.last_first, key=lambda each: each[0])
        self.first_second = min(self.first_second, other.first_second, key=lambda each: each[0])

    @property
    def fix(self) -> str:
        """What orders all of them."""
        hazard = self.hazards[0]
        if len(self.hazards) == 1 or hazard.misplaced or hazard.workspace:
            return hazard.fix
        return fix(
            hazard.kind, self.last_first[1], self.first_second[1], "", "", device=hazard.device
        )
