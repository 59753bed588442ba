"""The memory that an allocator reserves on a device, and what it would reserve otherwise."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuviz.advice.reserved.decisive_request import DecisiveRequest, growing_request, memory_before
from gpuviz.analysis.abandoned_streams import abandoned_streams
from gpuviz.analysis.allocator_settings import CUPY, known_settings
from gpuviz.analysis.device_replay import (
    Change,
    DeviceReplay,
    SharedOperations,
    parsed,
    total_memory,
)
from gpuviz.analysis.pools import allocator_beside
from gpuviz.analysis.statistics import statistics
from gpuviz.analysis.torch_alone import by_torch_alone
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.manifest import TORCH_ALLOCATOR
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS
from gpuviz.quantities import format_bytes

_CUPY_POOL = "cupy.cuda.memory.MemoryPool"
# What saves a smaller share of the reserved bytes is not worth another allocator or structure.
LEAST_SHARE = 0.05
# Of a device that is emptier than this, no program needs less memory.
_CROWDED = 0.5
# Unless that much of the device is reserved for nothing: of all of it, and for each byte in use.
_WASTED, _TIMES_USED = 0.1, 8
# Or that much of it, if further work reserves more.
_GROWN = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a replay led to, in bytes.

    Attributes:
        reserved: The peak of reserved bytes.
        row: The event of the recording that led to it, which requested memory; -1 if there is none.
        failures: Requests that failed.
    """

    reserved: int
    row: int
    failures: int


class ReservedMemory:
    """What the allocator reserved on a device, and replays under other circumstances.

    Args:
        recording: The recording.
        device: Ordinal.

    Attributes:
        own: The settings of the recorded allocator, or ``cupy``; None if it cannot be replayed.
    """

    def __init__(self, recording: RecordingData, device: int) -> None:
        self.recording, self.device = by_torch_alone(recording), device
        self._known: dict[tuple[str, Change], Outcome] = {}
        self._shared: SharedOperations = {}
        manifest = self.recording.manifest
        self.own: str | None = None
        if allocator_beside(self.recording.tables):
            return
        if manifest.allocator == "caching" or manifest.allocator_name == TORCH_ALLOCATOR:
            self.own = ",".join(known_settings(manifest))
        elif manifest.allocator_name == _CUPY_POOL:
            self.own = CUPY

    @cached_property
    def peak(self) -> int:
        """The recorded peak of reserved bytes."""
        return statistics(self.recording, self.device)["reserved_bytes.all.peak"]

    @cached_property
    def failure(self) -> int:
        """The event of the first request that failed; -1 if none did."""
        failed = np.flatnonzero(self._of_device & (self._actions == ACTIONS.index("oom")))
        return int(failed[0]) if len(failed) else -1

    @cached_property
    def failures(self) -> int:
        """The number of requests that failed."""
        return int((self._of_device & (self._actions == ACTIONS.index("oom"))).sum())

    @cached_property
    def room(self) -> int:
        """The memory that the allocator could reserve, in bytes; 0 if unknown.

        If a request failed, what was reserved and free then: other programs and libraries may have
        used the rest of the device. If the device had enough, something else was the limit.
        Observers of CuPy's pool do not record what was free.
        """
        total = total_memory(self.recording, self.device)
        if self.failure < 0 or self.own in (None, CUPY):
            return total
        free = int(plain(self.recording.tables["memory_events"]["address"])[self.failure])
        if free >= self._size_of_segment(self.failure):
            return 0
        reachable = memory_before(self.recording, self.device, self.failure).reserved + free
        return min(reachable, total) if total else reachable

    @property
    def is_crowded(self) -> bool:
        """Whether it may matter how much is reserved.

        A request failed or released the cache, or half of the device was reserved, or it is unknown
        how large the device is.
        """
        stats = statistics(self.recording, self.device)
        is_full = self.failures > 0 or stats["num_alloc_retries"] > 0
        return is_full or not self.room or self.peak >= _CROWDED * self.room

    @property
    def is_wasted(self) -> bool:
        """Whether a tenth of a known device is reserved, but at most an eighth of it ever in use.

        What one program reserves, no other program gets, and a smaller device may not have it.
        """
        requested = statistics(self.recording, self.device)["requested_bytes.all.peak"]
        is_much = self.room > 0 and self.peak - requested >= _WASTED * self.room
        return is_much and self.peak >= _TIMES_USED * requested

    @cached_property
    def abandoned_streams(self) -> np.ndarray:
        """The ids of streams that serve one piece of work each, one after another."""
        return abandoned_streams(self.recording, self.device)

    @property
    def grows_with_streams(self) -> bool:
        """Whether a twentieth of a known device is reserved for nothing, and streams are abandoned.

        Each new stream reserves more, as long as there is work.
        """
        requested = statistics(self.recording, self.device)["requested_bytes.all.peak"]
        is_much = self.room > 0 and self.peak - requested >= _GROWN * self.room
        return is_much and len(self.abandoned_streams) > 0

    @property
    def matters(self) -> bool:
        """Whether it matters how much is reserved."""
        return self.peak > 0 and (self.is_crowded or self.is_wasted or self.grows_with_streams)

    def can_be_lower(self, least_bytes: int) -> bool:
        """Return whether another allocator may reserve enough less, or let fewer requests fail.

        None reserves less than the program holds at once, which is what it requested, if no free
        waits for another stream.

        Args:
            least_bytes: What must be saved.
        """
        requested = statistics(self.recording, self.device)["requested_bytes.all.peak"]
        is_loose = self.peak - requested >= max(LEAST_SHARE * self.peak, least_bytes)
        return is_loose or self.failures > 0 or self._frees_wait

    @property
    def _frees_wait(self) -> bool:
        actions = self._actions[self._of_device]
        freed = np.flatnonzero(actions == ACTIONS.index("free_requested"))
        addresses = plain(self.recording.tables["memory_events"]["address"])[self._of_device]
        after = np.minimum(freed + 1, len(actions) - 1)
        at_once = actions[after] == ACTIONS.index("free_completed")
        return not (at_once & (addresses[after] == addresses[freed])).all()

    @cached_property
    def is_reproduced(self) -> bool:
        """Whether a replay under the program's own settings reserves what was recorded."""
        if self.own is None or not self.peak:
            return False
        maps = bool(np.any(self._of_device & (self._actions == ACTIONS.index("segment_map"))))
        # Recordings of torch lack changes of the settings.
        if self.own != CUPY and maps != parsed(self.recording, self.own).expandable_segments:
            return False
        known = self.recording.tables["streams"]["id"].to_pylist()
        used = distinct(plain(self.recording.tables["memory_events"]["stream"])).tolist()
        if not {0, *known}.issuperset(used):
            return False
        again = self.replayed(self.own)
        return again.reserved == self.peak and again.failures == self.failures

    def replayed(self, settings: str, change: Change = "") -> Outcome:
        """Return what the recorded requests would lead to.

        Args:
            settings: Of torch's allocator, or ``cupy``.
            change: As for `DeviceReplay`.
        """
        if (settings, change) not in self._known:
            self._known[settings, change] = self._replayed(settings, change)
        return self._known[settings, change]

    def _replayed(self, settings: str, change: Change) -> Outcome:
        capacity = self.room if self.failures and self.room else None
        replay = DeviceReplay(
            self.recording, self.device, settings, capacity, change, shared=self._shared
        )
        found = replay.outcome()
        return Outcome(
            reserved=found.peak_reserved,
            row=found.peak_reserved_origin,
            failures=found.failures,
        )

    @cached_property
    def request(self) -> DecisiveRequest:
        """The request that shows the problem: the first failure, else what grew the memory most.

        It is a request until the peak of reserved bytes, and only valid if the recording is
        reproduced.
        """
        row = self.failure
        if not self.failures:
            until = self.replayed(self.own or "").row
            row = growing_request(self.recording, self.device, until)
        return DecisiveRequest(self.recording, self.device, row)

    def saved(self, outcome: Outcome) -> int:
        """Return how many bytes less would be reserved; 0 if that would not help.

        A request that failed counts as if it had been served by a new segment.
        """
        if outcome.failures:
            return 0
        if not self.failures:
            return max(self.peak - outcome.reserved, 0)
        return max(self.request.memory.reserved + self.request.bytes - outcome.reserved, 0)

    def is_relevant(self, outcome: Outcome, least_share: float) -> bool:
        """Return whether requests that failed would not, or enough less would be reserved."""
        saved = self.saved(outcome)
        return saved > 0 and (self.failures > 0 or saved >= least_share * self.peak)

    def effect(self, outcome: Outcome) -> str:
        """Return what an outcome means, after a condition: ``the allocator would ...``."""
        if not self.failures:
            reserved = f"{format_bytes(outcome.reserved)} instead of {format_bytes(self.peak)}"
            return f"the allocator would reserve {reserved}"
        if self.failures == 1:
            return "the request that failed would have succeeded"
        return f"none of the {self.failures} requests that failed would have failed"

    def _size_of_segment(self, request: int) -> int:
        """Return the bytes that a request would need from the device."""
        size = int(plain(self.recording.tables["memory_events"]["size"])[request])
        return parsed(self.recording, self.own).segment_size(size)

    @cached_property
    def _actions(self) -> np.ndarray:
        return codes(self.recording.tables["memory_events"]["action"], ACTIONS)

    @cached_property
    def _of_device(self) -> np.ndarray:
        there: np.ndarray = plain(self.recording.tables["memory_events"]["device"]) == self.device
        return there


def reserved_memory(recording: RecordingData, least_bytes: int = 0) -> list[ReservedMemory]:
    """Return the devices whose reserved memory matters, or is wasted, and can be predicted.

    Args:
        recording: The recording.
        least_bytes: What a change must save.
    """
    if recording.dropped:
        return []
    devices = [ReservedMemory(recording, device) for device in recording.devices]
    first = recording.manifest.initial_events
    worth = [each for each in devices if each.matters]
    found = [each for each in worth if each.can_be_lower(least_bytes) and each.is_reproduced]
    # What led to a peak before the recording is unknown.
    return [each for each in found if each.request.row >= first]
