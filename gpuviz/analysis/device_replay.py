"""The memory operations of one device of a recording, ready to be repeated by an allocator."""

from typing import TYPE_CHECKING, Any, Literal

from gpuviz import _core
from gpuviz.analysis.allocator_settings import CUPY, allocator_settings
from gpuviz.analysis.columns import codes, plain
from gpuviz.recording.tables import ACTIONS, schemas

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.recording.recording import Recording

Streams = Literal["recorded", "one", "unused"]
"""How a replay treats streams: as recorded, all blocks on one, or without waiting for others."""
# More than any GPU has; for recordings that do not contain the size of their device.
UNLIMITED = 1 << 44


class DeviceReplay:
    """The operations of one device, with an allocator and a simulated device.

    Args:
        recording: The recording.
        device: Ordinal.
        settings: The allocator's settings, or ``cupy`` for CuPy's own pool; by default those of the
            recording.
        capacity: Memory of the device in bytes; by default that of the recorded device.
        streams: ``one`` allocates all blocks on one stream; with ``unused``, no free waits for the
            work of another stream. The rows of the operations are then not those of the recording.

    Attributes:
        capacity: Memory of the device in bytes; 0 if unknown, and then unlimited.
        device: The simulated device.
        allocator: The allocator that repeats the operations.
        events: The recorded events.
        initial_events: The number of events that describe what existed before the recording.
        operations: What they repeat.

    Raises:
        ValueError: ``settings`` has an unknown key or a bad value.
    """

    def __init__(
        self,
        recording: "Recording",
        device: int,
        settings: str | None,
        capacity: int | None,
        streams: Streams = "recorded",
    ) -> None:
        self.capacity = total_memory(recording, device) if capacity is None else capacity
        self.events, self.initial_events = _recorded_events(recording, device, streams)
        self.operations = self._operations(recording, settings)
        limit = self.operations.inferred_limit
        if settings == CUPY and limit is not None:
            # A limit of CuPy's pool has another effect than a full device, which it was.
            self.capacity = limit
            self.operations = self._operations(recording, settings)
        self._settings = parsed(recording, settings)
        self.device = _core.SimulatedDevice(self.capacity or UNLIMITED, ordinal=device)
        self.allocator: _core.Allocator
        if settings == CUPY:
            self.allocator = _core.CupyPool(self.device)
        else:
            self.allocator = _core.CachingAllocator(self.device, self._settings)

    def outcome(self) -> _core.ReplayOutcome:
        """Repeat the operations, once, and return what they led to."""
        outcome = _core.ReplayOutcome(
            initial_events=self.initial_events, large_page=self._settings.large_segment_size
        )
        self.allocator.attach(outcome)
        program = self.operations.program
        _core.Replayer(program, self.device, self.allocator, outcome).run()
        self.allocator.detach()
        outcome.finish()
        return outcome

    def _operations(self, recording: "Recording", settings: str | None) -> _core.RecordedOperations:
        manifest = recording.manifest
        recorded, own = allocator_settings(recording), parsed(recording, settings)
        of_gpuviz = manifest.allocator == "caching"
        filters = _core.CachingAllocator.PoolFilter
        return self.events.operations(
            settings=recorded if own.per_process_memory_fraction is None else own,
            initial_events=self.initial_events,
            capacity=self.capacity,
            lacks_calls=not of_gpuviz and not _has_empty_cache(recording),
            keeps_settings=settings != CUPY and _are_alike(own, recorded),
            keeps_limits=settings is None or own.per_process_memory_fraction is None,
            pool_filter=filters.this_thread if of_gpuviz else filters.everything,
        )


def total_memory(recording: "Recording", device: int) -> int:
    """Return the memory of a device in bytes; 0 if unknown."""
    rows = recording.table("devices").to_pylist()
    return next((int(row["total_memory"]) for row in rows if row["id"] == device), 0)


def parsed(recording: "Recording", settings: str | None) -> _core.AllocatorSettings:
    """Return settings of torch's allocator; those of the recording if None."""
    if settings is None:
        return allocator_settings(recording)
    return _core.AllocatorSettings.parse("" if settings == CUPY else settings)


def _are_alike(first: _core.AllocatorSettings, second: _core.AllocatorSettings) -> bool:
    """Return whether two settings differ at most in the fraction of memory."""
    compared = (
        "max_split_size",
        "max_non_split_rounding_size",
        "large_segment_size",
        "garbage_collection_threshold",
        "expandable_segments",
        "roundup_power2_divisions",
    )
    return all(getattr(first, name) == getattr(second, name) for name in compared)


def _has_empty_cache(recording: "Recording") -> bool:
    import numpy as np

    actions = codes(recording.table("memory_events")["action"], ACTIONS)
    return bool(np.any(actions == ACTIONS.index("empty_cache")))


def _recorded_events(
    recording: "Recording", device: int, streams: Streams
) -> tuple[_core.RecordedEvents, int]:
    """Return the events, and how many of them describe what existed before."""
    import numpy as np

    table = recording.table("memory_events")
    columns = {
        field.name: codes(table["action"], ACTIONS)
        if field.name == "action"
        else plain(table[field.name])
        for field in schemas()["memory_events"]
    }
    initial = recording.manifest.initial_events
    if streams == "unused":
        rows = _rows_without_waits(columns["action"])
        columns = {name: values[rows] for name, values in columns.items()}
        second = np.flatnonzero(np.diff(rows, prepend=-1) == 0)
        columns["action"][second] = ACTIONS.index("free_completed")
        initial = int(np.searchsorted(rows, initial))
    known = recording.table("streams")
    handles = plain(known["handle"])
    events = _core.RecordedEvents(
        {name: np.ascontiguousarray(values) for name, values in columns.items()},
        device,
        np.ascontiguousarray(plain(known["id"])),
        np.ascontiguousarray(np.zeros_like(handles) if streams == "one" else handles),
    )
    return events, initial


def _rows_without_waits(actions: "NDArray[Any]") -> "NDArray[Any]":
    """Return the rows if no block were used by another stream; each free twice."""
    import numpy as np

    waits = [ACTIONS.index(name) for name in ("free_completed", "record_stream")]
    kept = np.flatnonzero(~np.isin(actions, waits))
    return np.repeat(kept, np.where(actions[kept] == ACTIONS.index("free_requested"), 2, 1))
