"""Repetitions of a failed request under other circumstances, on a simulated device."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.allocator_settings import EXPANDABLE, known_settings
from gpuviz.analysis.device_replay import DeviceReplay
from gpuviz.analysis.pools import TORCH_OWNER, are_of, is_torchs
from gpuviz.analysis.statistics import statistics
from gpuviz.data.arrays import numbers
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import ACTIONS, schemas
from gpuviz.errors import GpuvizError
from gpuviz.out_of_memory.request import manifest_of
from gpuviz.out_of_memory.unused_arrays import longest_unused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData
    from gpuviz.out_of_memory.cached_memory import Obstacle
    from gpuviz.out_of_memory.failures import OutOfMemory

_EVENTS = "memory_events"
_LIMIT = "memory_limit"
_FRACTION = "per_process_memory_fraction"
# What an allocator does by itself, and what it does only if it has no other memory.
_BY_ALLOCATOR = (
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
)
_RELEASES = ("segment_free", "segment_unmap", "oom", "empty_cache")
_SPLITS = ("max_split_size_mb", "max_non_split_rounding_mb")
# A trial repeats all operations before the failure, which takes time.
MOST_EVENTS = 1_000_000
_MOST_PLACES = 3
_MOST_TRIED = 4
# Of the request, what a smaller one has at least and at most, in units of a small segment.
_LEAST_PIECE, _MOST_PIECE, _PIECE = 0.25, 0.9, 2 << 20
# Of the request's bytes.
_MOST_PINNED = 0.25
ROUNDING = "roundup_power2_divisions"
# By torch's rules requests above 1 MiB share segments of 20 MiB; from 10 MiB on, each has its own.
_SHARED_SEGMENT, OWN_SEGMENT = 1 << 20, 10 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A failed request in its recording.

    Attributes:
        recording: The recording.
        row: The row of the failure in ``memory_events``.
    """

    recording: "RecordingData"
    row: int


class Trials:
    """Replays of the program until a failed request, in which one circumstance differs.

    The device has the memory that the allocator had reserved and what was free. Only the
    allocator's events matter: frees that wait for other streams complete as recorded. If that could
    be different, what changes the program from its start on is not tried.

    Args:
        failed: The failure.
        moment: Its place in the recording.
    """

    def __init__(self, failed: "OutOfMemory", moment: Moment) -> None:
        self._failed = failed
        self._moment = moment
        items = known_settings(manifest_of(moment.recording, failed.pool))
        self._items = [item for item in items if not item.startswith(_FRACTION)]
        self._room = failed.reserved + (failed.device_free or 0)
        self._limit = failed.limit
        if failed.limit is None and not failed.request.limits_are_known:
            self._limit = self._inferred_limit()

    @cached_property
    def reproduce_the_failure(self) -> bool:
        """Whether the same request fails in a replay with the same settings and memory."""
        failed = self._failed
        if failed.device_free is None or failed.verdict == "refused":
            return False
        if self._moment.row > MOST_EVENTS:
            return False
        replayed = self._replayed(self._own_capacity, self._items, (), {})
        if replayed is None or _succeeded(replayed, self._earlier_failures):
            return False
        stats = statistics(replayed, failed.device)
        return stats["reserved_bytes.all.current"] == failed.reserved

    def without_limit(self) -> bool:
        """Return whether the request succeeds if only the device limits the allocator."""
        return self._limit is not None and self._succeeds(capacity=self._room, is_limited=False)

    def with_free_splits(self) -> bool:
        """Return whether it succeeds without a limit on the blocks that are split."""
        items = [item for item in self._items if not item.startswith(_SPLITS)]
        return items != self._items and self._succeeds(items=items)

    def with_expandable_segments(self) -> bool:
        """Return whether it succeeds with expandable segments from the start."""
        if any(item.replace(" ", "") == f"{EXPANDABLE}:True" for item in self._items):
            return False
        items = [item for item in self._items if not item.startswith(EXPANDABLE)]
        return self._succeeds(items=[*items, f"{EXPANDABLE}:True"])

    def after_empty_cache(self) -> bool:
        """Return whether it succeeds after a call of ``empty_cache`` outside private pools."""
        row = {"action": "empty_cache", "stream": 0, "pool": 0}
        return self._succeeds(before=(row,))

    def after_release_beside(self) -> bool:
        """Return whether it succeeds once the other allocator has released what it does not use."""
        released = self._failed.cached_beside
        return released > 0 and self._succeeds(capacity=self._own_capacity_with(released))

    def places(self) -> Iterator[str]:
        """Yield the names of other pools and streams in which it succeeds, and can be made."""
        failed = self._failed
        own = (failed.pool, failed.stream)
        others = [
            each
            for each in failed.free
            if (each.pool, each.stream) != own and not each.is_destroyed
        ]
        for each in sorted(others, key=lambda each: -each.largest)[:_MOST_PLACES]:
            if self._succeeds(change={"pool": each.pool, "stream": each.stream}):
                yield each.name

    def without_obstacle(self) -> bool:
        """Return whether it succeeds after the blocks between free memory are freed."""
        return self._without(self._failed.obstacle)

    def without_pins(self) -> bool:
        """Return whether it succeeds after the few blocks that keep segments in use are freed."""
        return self._without(few_pins(self._failed))

    def with_less_rounding(self) -> bool:
        """Return whether it succeeds without a setting that rounds sizes up."""
        items = [item for item in self._items if not item.startswith(ROUNDING)]
        return items != self._items and self._succeeds(items=items)

    def with_own_segment(self) -> bool:
        """Return whether a request that is large enough for a segment of its own succeeds."""
        change = {"size": OWN_SEGMENT, "requested_size": OWN_SEGMENT}
        is_between = _SHARED_SEGMENT < self._failed.size < OWN_SEGMENT
        return is_between and self._succeeds(change=change)

    def without_unused(self) -> "Obstacle | None":
        """Return the live arrays, unused for longest, without which it succeeds; None without."""
        if not self.reproduce_the_failure:
            return None
        failed, moment = self._failed, self._moment
        needed = failed.size - max(failed.request.own_block, failed.request.room)
        found = longest_unused(moment.recording, moment.row, needed, of_torch=failed.of_torch)
        return next((each for each in islice(found, _MOST_TRIED) if self._after_frees(each)), None)

    def largest(self) -> int:
        """Return the bytes of a smaller request that succeeds; 0 if there is none worth making."""
        request = self._failed.request
        room = self._own_capacity - self._failed.reserved
        least, most = (int(share * self._failed.size) for share in (_LEAST_PIECE, _MOST_PIECE))
        sizes = {min(each, most) // _PIECE * _PIECE for each in (request.own_block, room)}
        for size in sorted(sizes, reverse=True):
            change = {"size": size, "requested_size": size}
            if size >= max(least, 1) and self._succeeds(change=change):
                return size
        return 0

    def _without(self, found: "Obstacle | None") -> bool:
        """Return whether it succeeds after fewer live bytes than those of the request are freed."""
        is_less = found is not None and 0 < found.bytes < self._failed.size
        return is_less and found is not None and self._after_frees(found)

    def _after_frees(self, found: "Obstacle") -> bool:
        """Return whether it succeeds after some live blocks are freed."""
        failed = self._failed
        places = found.places or ((failed.pool, failed.stream),) * len(found.addresses)
        used = self._used_by_streams
        rows = [
            {
                "action": action,
                "address": address,
                "size": size,
                "requested_size": size,
                "pool": pool,
                "stream": stream,
            }
            for (address, size), (pool, stream) in zip(found.addresses, places, strict=True)
            for action in ("free_requested", "free_completed")
        ]
        at_once = self._succeeds(before=rows)
        # Other streams may still use them, until the request waits for all streams.
        late = [
            row for row in rows if row["address"] not in used or row["action"] == "free_requested"
        ]
        return at_once and (late == rows or self._succeeds(before=late))

    @cached_property
    def _used_by_streams(self) -> set[int]:
        """The addresses of blocks that other streams have used."""
        is_use = self._is_own(("record_stream",))
        addresses: list[int] = plain(self._moment.recording.tables[_EVENTS]["address"])[
            : self._moment.row
        ][is_use].tolist()
        return set(addresses)

    def _is_own(self, actions: tuple[str, ...]) -> "NDArray[Any]":
        """Return which events before the failure are such actions on its device."""
        events = self._moment.recording.tables[_EVENTS].slice(0, self._moment.row)
        is_action = np.isin(codes(events["action"], ACTIONS), list(map(ACTIONS.index, actions)))
        own: NDArray[Any] = is_action & (plain(events["device"]) == self._failed.device)
        return own

    @cached_property
    def _depends_on_waits(self) -> bool:
        """Whether frees completed after a wait that the program would not have under others.

        A request waits for all streams before it fails, and when a segment is released. The program
        goes on later then, and other memory is free at its next requests than without the wait.
        """
        events, waited = self._late_frees
        actions = codes(events["action"], ACTIONS)
        released = np.flatnonzero(np.isin(actions, list(map(ACTIONS.index, _RELEASES))))
        if not len(released):
            return False
        # The wait comes before what is released, after what the program did before.
        begin = _asked_end(events.slice(0, int(released[0])))
        return bool(waited[begin:].any())

    @property
    def has_late_frees(self) -> bool:
        """Whether frees waited for other streams; other settings may complete them elsewhere."""
        return bool(self._late_frees[1].any())

    @cached_property
    def _late_frees(self) -> "tuple[pa.Table, NDArray[Any]]":
        """The device's events before the failure, and which of them complete a free later."""
        events = self._moment.recording.tables[_EVENTS].slice(0, self._moment.row)
        events = events.filter(plain(events["device"]) == self._failed.device)
        completed = codes(events["action"], ACTIONS) == ACTIONS.index("free_completed")
        return events, completed & ~_completes_at_once(events)

    @property
    def _own_capacity(self) -> int:
        return self._own_capacity_with(0)

    def _own_capacity_with(self, released: int) -> int:
        room = self._room + released
        return room if self._limit is None or self._has_limits else min(room, self._limit)

    @cached_property
    def _has_limits(self) -> bool:
        """Whether the limits are events, which the replays repeat; else less memory stands for it.

        A limit counts the memory that a request would map at once, unlike the memory of a device.
        """
        return bool(self._is_own((_LIMIT,)).any())

    def _inferred_limit(self) -> int | None:
        """Return what the allocator could reserve at most; None if the device limits it.

        The program set it, or failed requests show it, as for the replays of other settings.
        """
        if self._failed.of_torch or self._moment.row > MOST_EVENTS:
            return None
        limits = np.flatnonzero(self._is_own((_LIMIT,)))
        if len(limits):
            return int(plain(self._moment.recording.tables[_EVENTS]["size"])[limits[-1]])
        replay = DeviceReplay(self._moment.recording, self._failed.device, None, None)
        return replay.operations.inferred_limit

    def _succeeds(
        self,
        *,
        capacity: int | None = None,
        items: "list[str] | None" = None,
        before: "tuple[Mapping[str, Any], ...] | list[dict[str, Any]]" = (),
        change: "Mapping[str, Any] | None" = None,
        is_limited: bool = True,
    ) -> bool:
        changes_all = items is not None or capacity is not None
        if not self.reproduce_the_failure or (changes_all and self._depends_on_waits):
            return False
        replayed = self._replayed(
            self._own_capacity if capacity is None else capacity,
            self._items if items is None else items,
            before,
            change or {},
            is_limited=is_limited,
        )
        return replayed is not None and _succeeded(replayed, self._earlier_failures)

    @cached_property
    def _earlier_failures(self) -> int:
        """How many requests to the allocator on the device failed before this one."""
        events = self._moment.recording.tables[_EVENTS].slice(0, self._moment.row)
        own = plain(events["device"]) == self._failed.device
        own &= are_of(plain(events["pool"]), torch=self._failed.of_torch)
        return int((codes(events["action"], ACTIONS)[own] == ACTIONS.index("oom")).sum())

    def _replayed(
        self,
        capacity: int,
        items: list[str],
        before: "tuple[Mapping[str, Any], ...] | list[dict[str, Any]]",
        change: "Mapping[str, Any]",
        *,
        is_limited: bool = True,
    ) -> "RecordingData | None":
        """Return the replay until the request; None if the recording cannot be replayed."""
        import gpuviz

        program = self._program(max(capacity, 1), before, change, is_limited=is_limited)
        try:
            return gpuviz.replay(program, speed=0, settings=",".join(items))
        except (ValueError, RuntimeError, GpuvizError):
            return None

    def _program(
        self,
        capacity: int,
        before: "tuple[Mapping[str, Any], ...] | list[dict[str, Any]]",
        change: "Mapping[str, Any]",
        *,
        is_limited: bool,
    ) -> "RecordingData":
        recording, device = self._moment.recording, self._failed.device
        events = recording.tables[_EVENTS].slice(0, self._moment.row + 1)
        actions = codes(events["action"], ACTIONS)
        pools = plain(events["pool"])
        kept = (plain(events["device"]) == device) & are_of(pools, torch=self._failed.of_torch)
        kept &= is_limited | (actions != ACTIONS.index(_LIMIT))
        # Earlier failures have no effect beyond what they released, which the replay decides.
        initial = int(np.count_nonzero(kept[: recording.manifest.initial_events]))
        events = events.filter(kept)
        last = events.slice(events.num_rows - 1).to_pylist()[0]
        rows = [{**last, **each} for each in before] + [{**last, **change}]
        added = pa.Table.from_pylist(rows, schema=schemas()[_EVENTS])
        # What the allocator does by itself before the request is a part of it.
        first = max(_asked_end(events.slice(0, events.num_rows - 1)), initial)
        head = events.select(added.schema.names).cast(added.schema)
        parts = [head.slice(0, first), added.slice(0, len(before))]
        parts += [head.slice(first, events.num_rows - 1 - first), added.slice(len(before))]
        named = ("streams", "pools", "stacks", "frames", "threads")
        tables = {name: recording.tables[name] for name in named}
        tables[_EVENTS] = pa.concat_tables(parts).unify_dictionaries()
        tables["devices"] = _device(device, capacity)
        if self._failed.of_torch:
            tables |= _as_gpuvizs(tables[_EVENTS], tables["pools"])
        manifest = replace(
            manifest_of(recording, self._failed.pool),
            settings=",".join(self._items),
            initial_events=initial,
            window_start_ns=0,
            window_end_ns=0,
            failures={},
            memory_stats={},
            tables={},
        )
        return type(recording)(tables, manifest)


def few_pins(failed: "OutOfMemory") -> "Obstacle | None":
    """Return a failure's pins if they are few bytes, and fewer than those between free memory."""
    pins, obstacle = failed.pins, failed.obstacle
    if pins is None or pins.bytes > _MOST_PINNED * failed.size:
        return None
    return pins if obstacle is None or pins.bytes < obstacle.bytes else None


def _as_gpuvizs(events: "pa.Table", pools: "pa.Table") -> "dict[str, pa.Table]":
    """Return tables in which the pools of torch's allocator are those of one like it."""

    def moved(table: "pa.Table", column: str, by: int) -> "pa.Table":
        place = table.schema.get_field_index(column)
        field = table.schema.field(place)
        return table.set_column(place, field, numbers(plain(table[column]) - by, field.type))

    own = pools.filter(is_torchs(plain(pools["id"])))
    return {
        _EVENTS: moved(events, "pool", 2 * TORCH_OWNER),
        "pools": moved(moved(own, "id", 2 * TORCH_OWNER), "owner", TORCH_OWNER),
    }


def _device(device: int, capacity: int) -> "pa.Table":
    row = {"id": device, "name": "", "total_memory": capacity, "kind": "simulated", "uuid": ""}
    return pa.Table.from_pylist([row], schema=schemas()["devices"])


def _completes_at_once(events: "pa.Table") -> "NDArray[Any]":
    """Return which events of a device complete the free before them."""
    actions, addresses = codes(events["action"], ACTIONS), plain(events["address"])
    at_once: NDArray[Any] = actions == ACTIONS.index("free_completed")
    at_once[:1] = False
    at_once[1:] &= actions[:-1] == ACTIONS.index("free_requested")
    at_once[1:] &= addresses[1:] == addresses[:-1]
    return at_once


def _asked_end(events: "pa.Table") -> int:
    """Return the row after the last event of a device that an allocator did not cause by itself."""
    own = np.isin(codes(events["action"], ACTIONS), list(map(ACTIONS.index, _BY_ALLOCATOR)))
    return int(np.flatnonzero(~own | _completes_at_once(events)).max(initial=-1)) + 1


def _succeeded(replayed: "RecordingData", earlier_failures: int) -> bool:
    """Return whether the last request succeeds, and no other one fails that did not before."""
    is_failure = codes(replayed.tables[_EVENTS]["action"], ACTIONS) == ACTIONS.index("oom")
    is_served = len(is_failure) > 0 and not is_failure[-1]
    return bool(is_served and is_failure.sum() <= earlier_failures)
