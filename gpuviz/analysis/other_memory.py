"""Memory of devices outside the recorded allocators: of libraries, by the driver, and the rest."""

from dataclasses import replace
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from gpuviz.analysis.levels import memory_levels
from gpuviz.analysis.pools import WITHOUT_SEGMENTS, allocator_beside, are_of
from gpuviz.analysis.processes import processes
from gpuviz.analysis.unseen import is_whole
from gpuviz.data.arrays import integer_table
from gpuviz.data.columns import codes, distinct, is_among, plain, rows_at
from gpuviz.data.conclusions import schemas
from gpuviz.data.manifest import POOL_BYTES
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import ACTIONS, DICTIONARIES

# Samples that a track draws.
_MOST_SAMPLES = 1000
_OPERATIONS = DICTIONARIES["memory_operations", "operation"]
_MEMORIES = DICTIONARIES["memory_operations", "memory"]
ARENA_OF_JAX = "JAX's arena"
_ARENA = -1
# The driver gives out whole pages.
_PAGE_BYTES = 2 << 20
_ON_DEVICE = [_MEMORIES.index(name) for name in ("device", "array", "managed")]
# What a recorded allocator has from the driver, or, if it does not tell, what it gives out.
_RECORDED = [ACTIONS.index(name) for name in ("segment_alloc", "segment_map", "alloc")]


def other_memory_samples(recording: RecordingData) -> pa.Table:
    """Return the samples that a track of each device draws, as the table ``other_memory``.

    Of many samples it has the largest of as many spans of time; without libraries there are none,
    because the line would never change.
    """
    known = set(other_memory(recording)["device"].to_pylist())
    samples: dict[int, list[dict[str, Any]]] = {}
    for row in other_memory(recording, "time").to_pylist():
        samples.setdefault(row["device"], []).append(row)
    drawn = []
    for device, rows in samples.items():
        if device not in known or len(rows) < 2:  # noqa: PLR2004 - a line has two ends
            continue
        step = -(-len(rows) // _MOST_SAMPLES)
        spans = (rows[at : at + step] for at in range(0, len(rows), step))
        drawn += [max(span, key=lambda row: row["libraries"] + row["rest"]) for span in spans]
    return pa.Table.from_pylist(drawn, schemas()["other_memory"])


def other_memory(recording: RecordingData, by: Literal["library", "time"] = "library") -> pa.Table:
    """Return what was used of devices outside the recorded allocators.

    By ``library``: one row for each device and library whose allocations CUPTI has seen, the
    largest peak first. Columns: ``device``, ``library`` (the name of its file, or `ARENA_OF_JAX`
    for the allocation that JAX divides itself; empty if unknown), ``allocations``, and in bytes
    ``current`` (at the end) and ``peak``.

    By ``time``: one row for each sample of a device's used memory. Columns: ``device``, ``time``
    (ns), and in bytes ``used`` (of the whole device, as the driver says), ``recorded`` (what the
    recorded allocators had from it), ``libraries`` (the rows above at that time) and ``rest``, so
    that the last three are ``used``: CUDA contexts, other processes, and what this process had
    allocated before the recording. If streams were recorded in windows, nothing is known of
    libraries. The driver's sample and the events are moments apart, so that an
    allocation in between may be missing from one of them; ``rest`` is never negative.
    """
    return _by_library(recording) if by == "library" else _by_time(recording)


@Once
def _by_library(recording: RecordingData) -> pa.Table:
    parts = [_by_library(each.recording) for each in processes(recording)]
    if not parts:
        return _changes(recording).by_library()
    whole = pa.concat_tables(parts)
    return rows_at(whole, np.argsort(plain(whole["device"]), kind="stable"))


@Once
def _by_time(recording: RecordingData) -> pa.Table:
    parts = [_by_time(each.recording) for each in processes(recording)]
    if not parts:
        return _samples(recording, _changes(recording))
    rows = [each.rows["device_memory"] for each in processes(recording)]
    return rows_at(pa.concat_tables(parts), np.argsort(np.concatenate(rows), kind="stable"))


class _Changes:
    """Allocations and releases outside the recorded allocators, in the order of their times."""

    def __init__(self, recording: RecordingData) -> None:
        table = recording.tables["memory_operations"]
        self._recording = recording
        is_new = codes(table["operation"], _OPERATIONS) == _OPERATIONS.index("allocation")
        addresses = plain(table["address"])
        kept = np.isin(codes(table["memory"], _MEMORIES), _ON_DEVICE) & (addresses != 0)
        kept &= ~is_among(addresses, _recorded_addresses(recording))
        # Without all releases, it is not known what a library has.
        kept &= is_whole(recording.tables)
        rows = np.flatnonzero(kept)
        rows = rows[np.argsort(plain(table["time"])[rows], kind="stable")]
        times, devices, sizes = (plain(table[name])[rows] for name in ("time", "device", "bytes"))
        # CUPTI names any library as the source of an arena that JAX maps.
        source = plain(table["source"])[rows].astype(np.int64)
        source[_arenas_of_jax(recording, devices, sizes, is_new[rows])] = _ARENA
        operations = zip(
            is_new[rows].tolist(),
            addresses[rows].tolist(),
            *(column.tolist() for column in (times, devices, sizes, source)),
            strict=True,
        )
        # Time, device, bytes, library and whether it is an allocation.
        found: list[tuple[int, int, int, int, bool]] = []
        live: dict[tuple[int, int], tuple[int, int]] = {}
        for is_allocation, address, time, device, size, source in operations:
            # A release counts for the library that had allocated. It may have been missed, or be of
            # memory from before.
            freed, owner = live.pop((device, address), (0, 0))
            if freed:
                found.append((time, device, -freed, owner, False))
            if is_allocation:
                live[device, address] = (size, source)
                found.append((time, device, size, source, True))
        changes = np.array(found, np.int64).reshape(-1, 5)
        self.time: np.ndarray = changes[:, 0]
        self.device: np.ndarray = changes[:, 1]
        self.change: np.ndarray = changes[:, 2]
        self._library, self._is_allocation = changes[:, 3], changes[:, 4]

    def by_library(self) -> pa.Table:
        rows: list[dict[str, Any]] = []
        numbers, of_row = np.unique(self._library, return_inverse=True)
        paths = texts(self._recording.tables, np.maximum(numbers, 0))
        files = [
            ARENA_OF_JAX if number == _ARENA else PurePath(path).name
            for number, path in zip(numbers.tolist(), paths, strict=True)
        ]
        # Several paths may have one name.
        names, of_number = np.unique(np.array(files, str), return_inverse=True)
        library = of_number[of_row.ravel()] if len(numbers) else of_row
        for device in distinct(self.device).tolist():
            for number, name in enumerate(names.tolist()):
                chosen = (self.device == device) & (library == number)
                allocations = int(self._is_allocation[chosen].sum())
                if allocations:
                    level = np.cumsum(self.change[chosen])
                    rows.append(
                        {
                            "device": device,
                            "library": name,
                            "allocations": allocations,
                            "current": int(level[-1]),
                            "peak": int(level.max()),
                        }
                    )
        rows.sort(key=lambda row: (row["device"], -row["peak"], row["library"]))
        numbers_of = [(name, pa.int64()) for name in ("allocations", "current", "peak")]
        fields = [("device", pa.int16()), ("library", pa.utf8()), *numbers_of]
        return pa.Table.from_pylist(rows, pa.schema(fields))


@Once
def _changes(recording: RecordingData) -> _Changes:
    return _Changes(recording)


def _arenas_of_jax(
    recording: RecordingData,
    devices: np.ndarray,
    sizes: np.ndarray,
    is_new: np.ndarray,
) -> np.ndarray:
    """Return the rows of the single allocations that are as large as JAX says that its arena is."""
    found = []
    for device, stats in recording.manifest.memory_stats.items():
        arena = stats.get(POOL_BYTES, 0)
        pages = -(-arena // _PAGE_BYTES) * _PAGE_BYTES
        rows = np.flatnonzero(is_new & (devices == device) & np.isin(sizes, [arena, pages]))
        if arena > 0 and len(rows) == 1:
            found.append(int(rows[0]))
    return np.array(found, np.int64)


def _recorded_addresses(recording: RecordingData) -> np.ndarray:
    events = recording.tables["memory_events"]
    recorded = np.isin(codes(events["action"], ACTIONS), _RECORDED)
    recorded &= ~np.isin(plain(events["pool"]) // 2, WITHOUT_SEGMENTS)
    found: np.ndarray = distinct(plain(events["address"])[recorded])
    return found


def _samples(recording: RecordingData, changes: _Changes) -> pa.Table:
    table = recording.tables["device_memory"]
    device, time, used = (plain(table[name]) for name in ("device", "time", "used"))
    recorded, libraries = np.zeros(len(time), np.int64), np.zeros(len(time), np.int64)
    allocators = _levels_of_allocators(recording) if len(time) else []
    for each in distinct(device).tolist():
        here = device == each
        for levels in allocators:
            of_device = plain(levels["device"]) == each
            held = np.maximum(plain(levels["reserved"]), plain(levels["active"]))[of_device]
            recorded[here] += _at(plain(levels["time"])[of_device], held, time[here])
        own = changes.device == each
        total = np.cumsum(changes.change[own])
        libraries[here] = _at(changes.time[own], total, time[here])
    rest = np.maximum(used - recorded - libraries, 0)
    columns = {"time": time, "used": used, "recorded": recorded, "libraries": libraries}
    return integer_table({"device": device.astype(np.int16)} | columns | {"rest": rest})


def _levels_of_allocators(recording: RecordingData) -> list[pa.Table]:
    """Return ``memory_levels`` of each recorded allocator: torch's own is beside another one.

    One of them may not tell its segments, so that only the levels of each say what it has. RMM's
    memory resources and JAX are left out: they allocate as libraries do.
    """
    if not allocator_beside(recording.tables):
        return [memory_levels(recording)]
    events, manifest = recording.tables["memory_events"], recording.manifest
    pools = plain(events["pool"])
    found = []
    for own in (are_of(pools, torch=True), are_of(pools, torch=False)):
        initial = int(np.count_nonzero(own[: manifest.initial_events]))
        tables = {**recording.tables, "memory_events": events.filter(own)}
        part = type(recording)(tables, replace(manifest, initial_events=initial))
        found.append(memory_levels(part))
    return found


def _at(times: np.ndarray, values: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return the last value at each time; 0 before the first."""
    places = np.searchsorted(times, asked, side="right")
    found: np.ndarray = np.concatenate([[0], values])[places]
    return found
