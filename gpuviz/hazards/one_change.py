"""Hazards with one cause: a missing wait, an event in the wrong place, one shared workspace."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from gpuviz.data.recording_data import RecordingData
from gpuviz.hazards.fix import fix_of_waits, take_turns
from gpuviz.hazards.hazard import LIFETIME, Hazard, HazardOperation
from gpuviz.hazards.misplaced_events import Issued, event_uses
from gpuviz.hazards.suggestion import Streams, suggestion

_ONE_OR: tuple[Streams, Streams] = ("one", "several")


def of_one_change(recording: RecordingData, found: Sequence[Hazard]) -> "list[HazardsOfOneChange]":
    """Return the hazards that the same change would order, in the order of the first of each."""
    waits: list[_Wait] = []
    for hazard in found:
        alone = _Wait(recording, hazard)
        wait = next((each for each in waits if each.can_take(alone)), None)
        if wait is None:
            waits.append(alone)
        else:
            wait.take(alone)
    changes: dict[Hashable, list[_Wait]] = {}
    for wait in waits:
        changes.setdefault(_change(recording, wait), []).append(wait)
    return [HazardsOfOneChange(each) for each in changes.values()]


@dataclass(frozen=True, slots=True)
class _IssuedOperation:
    """An operation of a hazard, and when it was issued and on which stream; None if unknown."""

    operation: HazardOperation
    issued: Issued | None


def _issued(recording: RecordingData, operation: HazardOperation) -> _IssuedOperation:
    """Return an operation of a stream; a free is of the one that gets the memory again."""
    activity, event, tables = operation.activity, operation.event, recording.tables
    if activity >= 0:
        stream = tables["activities"]["stream"][activity].as_py()
        return _IssuedOperation(operation, event_uses(recording).issued(activity, stream))
    if event < 0:
        return _IssuedOperation(operation, None)
    row = tables["memory_events"].slice(event, 1).to_pylist()[0]
    return _IssuedOperation(operation, Issued(row["time"], row["stream"]))


class _Wait:
    """Hazards that one wait for one event would order.

    Attributes:
        hazards: The hazards, the first found first.
        is_of_streams: Whether an event and a wait between two streams is what they lack.
        last_first: The last of the first operations, which is ordered after all others of them.
        first_second: The earliest of the second operations, which all others are ordered after.
    """

    def __init__(self, recording: RecordingData, hazard: Hazard) -> None:
        self._uses = event_uses(recording)
        self.hazards = [hazard]
        # Memory that pools hand out to the host, or that graphs keep using, needs other changes.
        is_of_streams = hazard.memory == "device" or hazard.kind not in LIFETIME
        is_of_streams &= hazard.first.activity >= 0 and not hazard.second.is_of_host
        self.is_of_streams = is_of_streams and not (hazard.misplaced or hazard.workspace)
        sides = hazard.first, hazard.second
        self.last_first, self.first_second = (
            _issued(recording, each) if self.is_of_streams else _IssuedOperation(each, None)
            for each in sides
        )

    def can_take(self, other: "_Wait") -> bool:
        """Return whether an event after the last first operation orders those of both."""
        # Streams of the processes of a merged recording may have the same names.
        if not (self.is_of_streams and other.is_of_streams):
            return False
        if self.hazards[0].device != other.hazards[0].device:
            return False
        lasts = [self.last_first.issued, other.last_first.issued]
        seconds = [self.first_second.issued, other.first_second.issued]
        issued = [each for each in (*lasts, *seconds) if each is not None]
        if len(issued) < len(lasts) + len(seconds):
            return False
        first, last = sorted(issued[:2], key=lambda each: each.time)
        earliest, second = sorted(issued[2:], key=lambda each: each.time)
        if last.time >= earliest.time:
            return False
        return self._uses.orders(first, last) and self._uses.orders(earliest, second)

    def take(self, other: "_Wait") -> None:
        """Add hazards that the same wait orders."""
        self.hazards += other.hazards
        self.last_first = max(self.last_first, other.last_first, key=_time)
        self.first_second = min(self.first_second, other.first_second, key=_time)


def _time(operation: _IssuedOperation) -> int:
    return -1 if operation.issued is None else operation.issued.time


def _change(recording: RecordingData, wait: _Wait) -> Hashable:
    """Return what is equal for waits that are missing in the same lines of the program.

    These are the lines of all calls, since a function may be called for many purposes.
    """
    hazard, stacks = wait.hazards[0], recording.call_stacks
    if hazard.misplaced is not None:
        return hazard.device, hazard.misplaced
    if hazard.workspace:
        return hazard.device, hazard.workspace, hazard.allocated
    first, second = wait.last_first.operation, wait.first_second.operation
    if hazard.kind in LIFETIME and first.activity < 0:
        return hazard.device, hazard.allocated, hazard.freed
    lines = stacks.user_frames(first.stack), stacks.user_frames(second.stack)
    if not all(lines):
        return id(wait)
    if hazard.kind in LIFETIME:
        inner = lines[0]
        sites = [each.site for each in inner]
        # The last of the first operations may be one that the function did not issue.
        if hazard.is_freed_by_return and hazard.freed in sites[1:]:
            inner = inner[: sites.index(hazard.freed, 1)]
        return hazard.device, hazard.memory, inner, hazard.allocated
    return hazard.device, lines


class HazardsOfOneChange:
    """Hazards that one change of the program would order.

    Attributes:
        hazards: The hazards, the first found first.
    """

    def __init__(self, waits: list[_Wait]) -> None:
        self.hazards = [hazard for wait in waits for hazard in wait.hazards]
        self._waits = [(each.last_first.operation, each.first_second.operation) for each in waits]

    @property
    def _is_of_lifetime(self) -> bool:
        return all(each.kind in LIFETIME for each in self.hazards)

    @property
    def fix(self) -> str:
        """What orders all of them."""
        hazard = self.hazards[0]
        is_known = hazard.misplaced is not None or hazard.workspace or hazard.second.is_of_host
        if len(self.hazards) == 1 or is_known or self._is_of_lifetime:
            return hazard.fix
        return fix_of_waits(self._waits)

    @property
    def suggestion(self) -> tuple[str, ...]:
        """The fix as lines of a change; none if they are not known."""
        if self._is_of_lifetime:
            # The line that frees the memory is its second operation.
            frees = (each for each in self._waits if each[1].mode == "frees")
            first, second = next(frees, self._waits[0])
            hazard = next(each for each in self.hazards if each.second is second)
            return suggestion(hazard, first, second)
        hazard = next(each for each in self.hazards if each.kind not in LIFETIME)
        if hazard.misplaced or hazard.workspace:
            return suggestion(hazard, hazard.first, hazard.second)
        (first, second), *others = self._waits
        if take_turns(self._waits):
            return suggestion(hazard, first, second, "in turns")
        firsts = {each.where for each, _ in self._waits}
        # Events of several streams would need a list.
        return () if len(firsts) > 1 else suggestion(hazard, first, second, _ONE_OR[bool(others)])
