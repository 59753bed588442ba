"""Replays of a program until a failed request, on a simulated device."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.device_replay import DeviceReplay
from gpuviz.analysis.pools import are_of
from gpuviz.analysis.statistics import statistics
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS
from gpuviz.errors import GpuvizError
from gpuviz.out_of_memory.allocator_actions import depends_on_waits, late_frees
from gpuviz.out_of_memory.failing_program import FailingProgram
from gpuviz.out_of_memory.moment import Moment

if TYPE_CHECKING:
    from gpuviz.out_of_memory.failures import OutOfMemory

_EVENTS = "memory_events"
_LIMIT = "memory_limit"
# A trial repeats all operations before the failure, which takes time.
_MOST_EVENTS = 1_000_000


class FailureReplay:
    """Replays of the program until a failed request, in which one circumstance may differ.

    The device has the memory that the allocator had reserved and what was free. Only the
    allocator's events matter: frees that wait for other streams complete as recorded. If that could
    be different, what changes the program from its start on is not tried.

    Args:
        failed: The failure.
        moment: Its place in the recording.

    Attributes:
        settings: The allocator's settings, without the share of the memory that limits it.
        room: The memory of the device that the allocator has, or could have, in bytes.
        limit: What the allocator may reserve; None if only the device limits it.
    """

    def __init__(self, failed: "OutOfMemory", moment: Moment) -> None:
        self._failed, self._moment = failed, moment
        self._program = FailingProgram(failed, moment)
        self.settings = self._program.settings
        self.room = failed.reserved + (failed.device_free or 0)
        self.limit = failed.limit
        if failed.limit is None and not failed.request.limits_are_known:
            self.limit = self._inferred_limit()

    @cached_property
    def reproduces_the_failure(self) -> bool:
        """Whether the same request fails in a replay with the same settings and memory."""
        failed = self._failed
        if failed.device_free is None or failed.verdict == "refused":
            return False
        if self._moment.row > _MOST_EVENTS:
            return False
        replayed = self._replayed(self._program.on_device(self.capacity()), self.settings)
        if replayed is None or _succeeded(replayed, self._earlier_failures):
            return False
        stats = statistics(replayed, failed.device)
        return stats["reserved_bytes.all.current"] == failed.reserved

    def succeeds(
        self,
        *,
        capacity: int | None = None,
        settings: list[str] | None = None,
        before: Sequence[Mapping[str, Any]] = (),
        change: Mapping[str, Any] | None = None,
        is_limited: bool = True,
    ) -> bool:
        """Return whether the request succeeds, and no other one fails that did not before.

        Args:
            capacity: The memory of the device, in bytes; as it was if None.
            settings: The allocator's settings; as they were if None.
            before: Events before the request that the program did not have.
            change: What differs in the request.
            is_limited: Whether limits that the program set apply.
        """
        changes_all = settings is not None or capacity is not None
        if not self.reproduces_the_failure or (changes_all and self._depends_on_waits):
            return False
        program = self._program.on_device(
            self.capacity() if capacity is None else capacity,
            before,
            change,
            is_limited=is_limited,
        )
        replayed = self._replayed(program, self.settings if settings is None else settings)
        return replayed is not None and _succeeded(replayed, self._earlier_failures)

    def capacity(self, released: int = 0) -> int:
        """Return the memory that the allocator may reserve, after others have released some."""
        room = self.room + released
        return room if self.limit is None or self._has_limits else min(room, self.limit)

    @cached_property
    def has_late_frees(self) -> bool:
        """Whether frees waited for other streams; other settings may complete them elsewhere."""
        return bool(late_frees(self._events_before).any())

    def is_own(self, actions: tuple[str, ...]) -> np.ndarray:
        """Return which events before the failure are such actions on its device."""
        events = self._moment.recording.tables[_EVENTS].slice(0, self._moment.row)
        is_action = np.isin(codes(events["action"], ACTIONS), list(map(ACTIONS.index, actions)))
        own: np.ndarray = is_action & (plain(events["device"]) == self._failed.device)
        return own

    @cached_property
    def _depends_on_waits(self) -> bool:
        return depends_on_waits(self._events_before)

    @property
    def _events_before(self) -> pa.Table:
        """The device's events before the failure."""
        events = self._moment.recording.tables[_EVENTS].slice(0, self._moment.row)
        return events.filter(plain(events["device"]) == self._failed.device)

    @cached_property
    def _earlier_failures(self) -> int:
        """How many requests to the allocator on the device failed before this one."""
        events = self._moment.recording.tables[_EVENTS].slice(0, self._moment.row)
        own = plain(events["device"]) == self._failed.device
        own &= are_of(plain(events["pool"]), torch=self._failed.of_torch)
        return int((codes(events["action"], ACTIONS)[own] == ACTIONS.index("oom")).sum())

    @cached_property
    def _has_limits(self) -> bool:
        """Whether the limits are events, which the replays repeat; else less memory stands for it.

        A limit counts the memory that a request would map at once, unlike the memory of a device.
        """
        return bool(self.is_own((_LIMIT,)).any())

    def _inferred_limit(self) -> int | None:
        """Return what the allocator could reserve at most; None if the device limits it.

        The program set it, or failed requests show it, as for the replays of other settings.
        """
        if self._failed.of_torch or self._moment.row > _MOST_EVENTS:
            return None
        limits = np.flatnonzero(self.is_own((_LIMIT,)))
        if len(limits):
            return int(plain(self._moment.recording.tables[_EVENTS]["size"])[limits[-1]])
        replay = DeviceReplay(self._moment.recording, self._failed.device, None, None)
        return replay.operations.inferred_limit

    @staticmethod
    def _replayed(program: RecordingData, settings: list[str]) -> RecordingData | None:
        """Return the replay until the request; None if the recording cannot be replayed."""
        import gpuviz

        try:
            return gpuviz.replay(program, speed=0, settings=",".join(settings))
        except (ValueError, RuntimeError, GpuvizError):
            return None


def _succeeded(replayed: RecordingData, earlier_failures: int) -> bool:
    """Return whether the last request succeeds, and no other one fails that did not before."""
    is_failure = codes(replayed.tables[_EVENTS]["action"], ACTIONS) == ACTIONS.index("oom")
    is_served = len(is_failure) > 0 and not is_failure[-1]
    return bool(is_served and is_failure.sum() <= earlier_failures)
