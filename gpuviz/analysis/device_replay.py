"""The memory operations of one device of a recording, ready to be repeated by an allocator."""

from typing import Any, Literal

import numpy as np

from gpuviz import _core
from gpuviz.analysis.abandoned_streams import in_turn
from gpuviz.analysis.allocator_settings import CUPY, allocator_settings
from gpuviz.analysis.described import check_described
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS, FRAMEWORKS, schemas

Change = Literal[
    "", "one_stream", "streams_in_turn", "no_stream_uses", "no_empty_cache", "largest_first"
]
"""What a replay does otherwise: all blocks on one stream, a few streams in turn instead of those
that serve one piece of work each, frees that wait for no other stream, no calls of
``empty_cache``, or first the blocks of the peak, largest first, all freed again."""
SharedOperations = dict[tuple[Any, ...], _core.RecordedOperations]
# More than any GPU has; for recordings that do not contain the size of their device.
UNLIMITED = 1 << 44
# Above all addresses.
_ELSEWHERE = 1 << 62


class DeviceReplay:
    """The operations of one device, with an allocator and a simulated device.

    Args:
        recording: The recording.
        device: Ordinal.
        settings: The allocator's settings, or ``cupy`` for CuPy's own pool; by default those of the
            recording.
        capacity: Memory of the device in bytes; by default that of the recorded device.
        change: What is done otherwise.
        shared: The operations of earlier replays of the same device, to which this adds its own.

    Attributes:
        capacity: Memory of the device in bytes; 0 if unknown, and then unlimited.
        device: The simulated device.
        allocator: The allocator that repeats the operations.
        events: The recorded events.
        initial_events: The number of events that describe what existed before the recording.
        operations: What they repeat.
        rows: For each of the events, its row of the recording.

    Raises:
        ValueError: ``settings`` has an unknown key or a bad value.
        FormatError: The recording lacks the description of a stream.
    """

    def __init__(  # noqa: PLR0913 - the replays of a device share what they can
        self,
        recording: RecordingData,
        device: int,
        settings: str | None,
        capacity: int | None,
        change: Change = "",
        *,
        shared: SharedOperations | None = None,
    ) -> None:
        self._shared = {} if shared is None else shared
        if not self._shared:
            check_described(recording, "stream")
        self._change = change
        self.capacity = total_memory(recording, device) if capacity is None else capacity
        self.rows, actions = _changed(recording, device, change)
        initial = recording.manifest.initial_events
        self.initial_events = int(np.argmax(np.append(self.rows, initial) >= initial))
        self.events = _recorded_events(recording, device, self.rows, actions, change)
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

    def _operations(
        self, recording: RecordingData, settings: str | None
    ) -> _core.RecordedOperations:
        manifest = recording.manifest
        recorded, own = allocator_settings(manifest), parsed(recording, settings)
        has_limit = own.per_process_memory_fraction is not None
        keeps_settings = settings != CUPY and _are_alike(own, recorded)
        keeps_limits = settings is None or not has_limit
        limits = settings if has_limit else None
        key = (self._change, self.capacity, limits, keeps_settings, keeps_limits)
        if key not in self._shared:
            of_gpuviz = manifest.allocator == "caching"
            filters = _core.CachingAllocator.PoolFilter
            self._shared[key] = self.events.operations(
                settings=own if has_limit else recorded,
                initial_events=self.initial_events,
                capacity=self.capacity,
                lacks_calls=not of_gpuviz and not _has_empty_cache(recording),
                omits_calls=self._change == "no_empty_cache",
                keeps_settings=keeps_settings,
                keeps_limits=keeps_limits,
                pool_filter=filters.this_thread if of_gpuviz else filters.everything,
            )
        return self._shared[key]


def total_memory(recording: RecordingData, device: int) -> int:
    """Return the memory of a device in bytes; 0 if unknown."""
    rows = recording.tables["devices"].to_pylist()
    return next((max(int(row["total_memory"]), 0) for row in rows if row["id"] == device), 0)


def parsed(recording: RecordingData, settings: str | None) -> _core.AllocatorSettings:
    """Return settings of torch's allocator; those of the recording if None."""
    if settings is None:
        return allocator_settings(recording.manifest)
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


def _has_empty_cache(recording: RecordingData) -> bool:
    actions = codes(recording.tables["memory_events"]["action"], ACTIONS)
    return bool(np.any(actions == ACTIONS.index("empty_cache")))


def _changed(
    recording: RecordingData, device: int, change: Change
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the recording that are repeated, and the action of each."""
    actions = codes(recording.tables["memory_events"]["action"], ACTIONS)
    rows = np.arange(len(actions))
    requested, completed = map(ACTIONS.index, ("free_requested", "free_completed"))
    if change == "no_empty_cache":
        rows = rows[actions != ACTIONS.index("empty_cache")]
    elif change == "no_stream_uses":
        rows = rows[~np.isin(actions, [completed, ACTIONS.index("record_stream")])]
        rows = np.repeat(rows, np.where(actions[rows] == requested, 2, 1))
        twice = np.diff(rows, prepend=-1) == 0
        return rows, np.where(twice, completed, actions[rows]).astype(actions.dtype)
    elif change == "largest_first":
        initial = recording.manifest.initial_events
        blocks = _largest_first(recording, device)
        frees = np.tile(np.array([requested, completed], actions.dtype), len(blocks))
        rows = np.concatenate([rows[:initial], blocks, np.repeat(blocks, 2), rows[initial:]])
        return rows, np.concatenate([actions[:initial], actions[blocks], frees, actions[initial:]])
    return rows, actions[rows]


def _largest_first(recording: RecordingData, device: int) -> np.ndarray:
    """Return the allocations of the blocks that exist at the peak of reserved bytes, largest first.

    The block whose request led to the peak is one of them.
    """
    initial = recording.manifest.initial_events
    events = recording.tables["memory_events"]
    actions, size = codes(events["action"], ACTIONS), plain(events["size"])
    there = plain(events["device"]) == device
    made, released = (
        there & np.isin(actions, list(map(ACTIONS.index, names)))
        for names in (("segment_alloc", "segment_map"), ("segment_free", "segment_unmap"))
    )
    reserved = np.cumsum(np.where(made, size, 0) - np.where(released, size, 0))
    peak = initial + int(np.argmax(reserved[initial:])) if len(reserved) > initial else initial
    blocks = _core.lifetimes(recording.memory_columns, initial, device)
    begin, end = blocks["begin"], blocks["end"]
    request = begin[np.searchsorted(begin, peak)] if peak <= begin.max(initial=-1) else peak
    exist = (begin >= initial) & (begin <= request) & (end > request)
    allocations: np.ndarray = begin[exist]
    return allocations[np.argsort(-size[allocations], kind="stable")]


def _recorded_events(
    recording: RecordingData,
    device: int,
    rows: np.ndarray,
    actions: np.ndarray,
    change: Change,
) -> _core.RecordedEvents:
    table = recording.tables["memory_events"]
    texts = {"action", "framework"}
    names = [field.name for field in schemas()["memory_events"] if field.name not in texts]
    columns = {name: plain(table[name]) for name in names}
    columns["framework"] = codes(table["framework"], FRAMEWORKS)
    if change:
        columns = {name: values[rows] for name, values in columns.items()}
    if change == "largest_first":
        # At addresses of their own, as they are freed before they are allocated as recorded.
        begin = recording.manifest.initial_events
        end = begin + len(rows) - table.num_rows
        columns["address"][begin:end] += _ELSEWHERE
    columns["action"] = actions
    known = recording.tables["streams"]
    handles = plain(known["handle"])
    if change == "one_stream":
        handles = np.zeros_like(handles)
    elif change == "streams_in_turn":
        handles = in_turn(recording, device)
    return _core.RecordedEvents(
        {name: np.ascontiguousarray(values) for name, values in columns.items()},
        device,
        np.ascontiguousarray(plain(known["id"])),
        np.ascontiguousarray(handles),
    )
