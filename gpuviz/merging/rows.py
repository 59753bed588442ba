"""The rows of several recordings in one, with ids and times that do not collide."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.data.arrays import batch_of, numbers
from gpuviz.data.columns import codes, distinct, plain, rows_at
from gpuviz.data.escaping import as_unicode
from gpuviz.data.tables import ACTIONS, DEVICE_COLUMNS, schemas
from gpuviz.errors import GpuvizError
from gpuviz.merging.addresses import HIGHEST, AddressSpace, moved
from gpuviz.merging.ids import SPACES, FreeIds, Joined, Lookup, Pools, Shifted
from gpuviz.merging.placement import process_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuviz.merging.placement import Placement

_EVENTS = "memory_events"
_HOST_EVENTS = "host_memory_events"
_TIMES = {
    _EVENTS: ("time",),
    _HOST_EVENTS: ("time",),
    "device_memory": ("time",),
    "clock_snapshots": ("time",),
    "activities": ("time", "end"),
    "api_calls": ("time", "end"),
    "synchronizations": ("time", "end"),
    "memory_operations": ("time",),
    "host_accesses": ("time",),
    "overheads": ("time", "end"),
    "host_samples": ("time", "end"),
    "collectives": ("time",),
    "tensors": ("time",),
    "ranges": ("time", "end"),
    "streams": ("created", "destroyed"),
}
# Columns whose values below 1 are no times: open, unknown, or before the recording.
_UNTIMED = {
    ("synchronizations", "time"),
    ("synchronizations", "end"),
    ("ranges", "end"),
    ("streams", "created"),
    ("streams", "destroyed"),
}
_ADDRESSES = {(_EVENTS, "address"), ("launch_blocks", "block"), ("launch_blocks", "address")}
_ADDRESSES |= {("memory_operations", "address"), (_HOST_EVENTS, "address")}
_ADDRESSES |= {("host_accesses", "address"), ("held_blocks", "address")}
_ADDRESSES |= {("tensors", "address"), ("collectives", "source"), ("collectives", "destination")}
# For `oom` the free memory of the device, for limits nothing.
_NO_ADDRESS = [ACTIONS.index(name) for name in ("oom", "memory_limit", "empty_cache", "snapshot")]
_MOST_THREADS = 2**32 - 1
_MOST_DEVICES = 2**15
_OF_THREADS = (
    *(_EVENTS, _HOST_EVENTS, "api_calls", "overheads", "host_samples"),
    *("collectives", "ranges", "host_accesses"),
)
_IDS = {
    ("activities", "launch"): "launch",
    ("api_calls", "stack"): "stack",
    (_EVENTS, "stack"): "stack",
    (_HOST_EVENTS, "stack"): "stack",
    ("host_accesses", "stack"): "stack",
    ("host_samples", "stack"): "stack",
    ("host_samples", "holder"): "thread",
    (_EVENTS, "pool"): "pool",
    **{(table, "thread"): "thread" for table in _OF_THREADS},
    **{(table, "name"): "string" for table in ("activities", "api_calls", "graph_calls")},
    ("ranges", "name"): "string",
    ("memory_operations", "source"): "string",
    ("tensors", "name"): "string",
    **{column: space for space, columns in SPACES.items() for column in columns},
}
_JOINED = ("strings", "frames", "stacks", "launch_configurations", "pools", "threads", "devices")


class _Shared:
    """What the processes before had: the next free ids, and rows that are kept once."""

    def __init__(self) -> None:
        self.strings, self.frames, self.stacks = Joined(), Joined(), Joined()
        self.launches = Joined()
        self.pools = Pools()
        self.next = dict.fromkeys(SPACES, 1)
        self.thread_ids = FreeIds(_MOST_THREADS)
        self.threads: list[dict[str, Any]] = []
        self.devices: list[dict[str, Any]] = []
        self.addresses = AddressSpace()


class Merged:
    """The tables of several recordings as those of one.

    Rows that happened follow each other by process, except memory events, which are in the order
    of their times.
    """

    def __init__(self, placed: "Sequence[Placement]") -> None:
        shared = _Shared()
        self._shared = shared
        names = process_names(placed)
        self._parts = [
            _Part(each, name, number, shared)
            for number, (each, name) in enumerate(zip(placed, names, strict=True), 1)
        ]

    def tables(self) -> "dict[str, pa.Table]":
        """Return the tables of the merged recording."""
        shared = self._shared
        made = {
            name: self._joined(name)
            for name in schemas()
            if name not in {_EVENTS, _HOST_EVENTS, "processes", "clock_snapshots", *_JOINED}
        }
        reference = self._parts[0].placed.alignment
        made["clock_snapshots"] = self._joined(
            "clock_snapshots", [each for each in self._parts if each.placed.alignment == reference]
        )
        made |= {name: self._events(name) for name in (_EVENTS, _HOST_EVENTS)}
        rows: dict[str, Iterable[dict[str, Any]]] = {
            "strings": shared.strings.rows,
            "frames": shared.frames.rows,
            "stacks": shared.stacks.rows,
            "launch_configurations": shared.launches.rows,
            "pools": shared.pools.rows,
            "threads": shared.threads,
            "devices": shared.devices,
            "processes": [each.row() for each in self._parts],
        }
        return made | {name: _table(name, list(each)) for name, each in rows.items()}

    def facts(self) -> dict[str, Any]:
        """Return the manifest's facts about devices."""
        names = ("memory_stats", "failures", "delayed_frees", "writes_after_free", "device_links")
        facts: dict[str, dict[Any, Any]] = {name: {} for name in names}
        for part in self._parts:
            for name, found in part.facts().items():
                facts[name] |= found
        return facts

    def _joined(self, name: str, parts: "Iterable[_Part] | None" = None) -> "pa.Table":
        parts = self._parts if parts is None else parts
        tables = [each.table(name) for each in parts if each.has(name)]
        # One chunk, since each analysis joins the chunks of a column again.
        whole = pa.concat_tables([schemas()[name].empty_table(), *tables])
        return whole.unify_dictionaries().combine_chunks()

    def _events(self, name: str) -> "pa.Table":
        """Return events of memory: first those of existing memory, then by time.

        The order within a process stays.
        """
        parts = [each.table(name) for each in self._parts]
        keys = []
        for part, events in zip(self._parts, parts, strict=True):
            times = np.maximum.accumulate(plain(events["time"]))
            times[: part.initial(name)] = np.iinfo(np.int64).min
            keys.append(times)
        whole = pa.concat_tables(parts).unify_dictionaries()
        if not whole.num_rows:
            return schemas()[name].empty_table()
        order = np.argsort(np.concatenate(keys), kind="stable")
        return rows_at(whole, order)


class _Part:
    """A recording, and the ids and times of its rows in the merged one."""

    def __init__(self, placed: "Placement", name: str, number: int, shared: _Shared) -> None:
        self.placed, self.name, self.number = placed, name, number
        self._tables = tables = placed.recording.tables
        self._before = dict(shared.next)
        self._devices = self._add_devices(shared)
        self._ids: dict[str, Lookup | Shifted] = {
            space: Shifted(tables, space, first) for space, first in shared.next.items()
        }
        for space in SPACES:
            ids = self._ids[space]
            assert isinstance(ids, Shifted)  # noqa: S101
            shared.next[space] = ids.next
        self._next = dict(shared.next)
        self._ids["string"] = shared.strings.add(tables["strings"].to_pylist())
        self._ids["launch"] = shared.launches.add(tables["launch_configurations"].to_pylist())
        self._ids["pool"] = shared.pools.add(
            tables["pools"].to_pylist(), distinct(plain(tables[_EVENTS]["pool"])).tolist()
        )
        self._ids["thread"] = self._add_threads(shared)
        self._ids["stack"] = self._add_stacks(shared)
        addresses = self._address_range()
        self._address_shift = shared.addresses.place(*addresses)
        self._addresses = [each + self._address_shift for each in addresses]

    def row(self) -> dict[str, Any]:
        """Return the row of ``processes``."""
        manifest = self.placed.recording.manifest
        return {
            "id": self.number,
            "name": self.name,
            "rank": self.placed.rank,
            "process_id": manifest.process_id,
            "host": as_unicode(manifest.host),
            "program": as_unicode(" ".join(manifest.program)),
            "start": self.placed.start,
            "end": self.placed.end,
            "devices": list(self._devices.values()),
            "ordinals": list(self._devices),
            "threads": self._threads,
            "first_correlation": self._before["correlation"],
            "last_correlation": self._next["correlation"] - 1,
            "address_shift": self._address_shift,
            "first_address": self._addresses[0],
            "last_address": self._addresses[1],
            "clock_error": self.placed.alignment.error,
            "manifest": manifest.to_json(indent=None),
        }

    def has(self, name: str) -> bool:
        """Return whether a table has rows."""
        return bool(self._tables[name].num_rows)

    def table(self, name: str) -> "pa.Table":
        """Return a table with the ids and times of the merged recording."""
        table, schema = self._tables[name], schemas()[name]
        columns = [self._column(name, field.name, table) for field in schema]
        return pa.table(columns, schema=schema)

    def initial(self, name: str) -> int:
        """Return how many leading events of a table describe memory that existed before."""
        if name == _EVENTS:
            return self.placed.recording.manifest.initial_events
        return int((plain(self._tables[name]["time"]) <= 0).sum())

    def facts(self) -> dict[str, dict[Any, Any]]:
        """Return the manifest's facts about devices, by the devices of the merged recording."""
        manifest = self.placed.recording.manifest
        failures = {}
        for place, facts in manifest.failures.items():
            device, _, time = place.partition(":")
            if device.isdecimal() and time.isdecimal():
                failures[f"{self._device(int(device))}:{self._time(int(time))}"] = dict(facts)
        return {
            "memory_stats": {
                self._device(device): stats for device, stats in manifest.memory_stats.items()
            },
            "failures": failures,
            "delayed_frees": self._with_stacks(manifest.delayed_frees),
            "writes_after_free": self._with_stacks(manifest.writes_after_free),
            "device_links": {
                str(self._device(int(device))): [
                    {**row, "other": self._device(row["other"])} for row in rows
                ]
                for device, rows in manifest.device_links.items()
            },
        }

    def _with_stacks(self, by_device: Mapping[str, Any]) -> dict[str, Any]:
        def of_merged(row: Mapping[str, Any]) -> dict[str, Any]:
            names = [name for name in ("allocated", "freed", "used", "reused") if name in row]
            ids = np.array([row[name] for name in names], np.int64)
            stacks = self._ids["stack"].taken(ids).tolist()
            found = {**row, **dict(zip(names, stacks, strict=True))}
            if row.get("address", HIGHEST + 1) <= HIGHEST:
                found["address"] = row["address"] + self._address_shift
            return found

        return {
            str(self._device(int(device))): [of_merged(row) for row in rows]
            for device, rows in by_device.items()
        }

    def _device(self, ordinal: int) -> int:
        return self._devices.get(ordinal, ordinal)

    def _time(self, time: int) -> int:
        return int(self.placed.aligned(np.array([time], np.int64))[0])

    def _column(self, table: str, column: str, rows: "pa.Table") -> Any:
        values = rows[column]
        kind = values.type
        if column in DEVICE_COLUMNS:
            found = plain(values)
            return numbers(self._moved_devices(found), kind)
        if (table, column) in _IDS:
            return numbers(self._ids[_IDS[table, column]].taken(plain(values)), kind)
        if column in _TIMES.get(table, ()):
            return numbers(self._moved_times(table, column, rows), kind)
        if (table, column) in _ADDRESSES:
            return numbers(self._moved_addresses(table, column, rows), kind)
        return values

    def _moved_devices(self, devices: "NDArray[Any]") -> "NDArray[Any]":
        if not self._devices:
            return devices
        known = np.zeros(max(self._devices) + 1, np.int16)
        known[[*self._devices]] = [*self._devices.values()]
        return np.where(devices < 0, devices, known[np.maximum(devices, 0)])

    def _moved_times(self, table: str, column: str, rows: "pa.Table") -> "NDArray[Any]":
        times = plain(rows[column])
        moved = self.placed.aligned(times)
        if (table, column) in _UNTIMED:
            moved = np.where(times > 0, moved, times)
        if table in {_EVENTS, _HOST_EVENTS}:
            # Memory that existed before is shown from the start.
            initial = self.initial(table)
            moved[:initial] = np.minimum(moved[:initial], 0)
        return moved

    def _moved_addresses(self, table: str, column: str, rows: "pa.Table") -> "NDArray[Any]":
        addresses = plain(rows[column])
        of_memory = self._has_address(rows) if table in {_EVENTS, _HOST_EVENTS} else addresses != 0
        return moved(addresses, self._address_shift, of_memory)

    @staticmethod
    def _has_address(events: "pa.Table") -> "NDArray[Any]":
        return ~np.isin(codes(events["action"], ACTIONS), _NO_ADDRESS)

    def _address_range(self) -> tuple[int, int]:
        found, sizes = [], [1]
        for table, column in sorted(_ADDRESSES):
            rows = self._tables[table]
            addresses = plain(rows[column])
            if table in {_EVENTS, _HOST_EVENTS}:
                addresses = addresses[self._has_address(rows)]
                sizes.append(int(plain(rows["size"]).max(initial=0)))
            found.append(addresses[(addresses != 0) & (addresses <= HIGHEST)])
        largest = [int(each.max()) for each in found if len(each)]
        smallest = [int(each.min()) for each in found if len(each)]
        return min(smallest, default=0), max(largest, default=0) + min(max(sizes), HIGHEST)

    def _add_devices(self, shared: _Shared) -> dict[int, int]:
        known = {row["id"]: row for row in self._tables["devices"].to_pylist()}
        unknown = {"name": "", "total_memory": 0, "kind": "", "uuid": ""}
        unknown |= {"multiprocessors": 0, "memory_bandwidth": 0}
        seen = set(known)
        for name in schemas():
            for column in DEVICE_COLUMNS & set(schemas()[name].names):
                seen.update(distinct(plain(self._tables[name][column])).tolist())
        found = {}
        for ordinal in sorted(each for each in seen if each >= 0):
            found[ordinal] = len(shared.devices)
            if found[ordinal] == _MOST_DEVICES:
                raise GpuvizError(
                    "The recordings cannot be merged: together they have more than "
                    f"{_MOST_DEVICES:,} devices."
                )
            row = {**unknown, **known.get(ordinal, {}), "id": found[ordinal]}
            shared.devices.append(row)
        return found

    def _add_threads(self, shared: _Shared) -> Lookup:
        names = {row["id"]: row["name"] for row in self._tables["threads"].to_pylist()}
        used = set(names)
        for table in _OF_THREADS:
            used.update(distinct(plain(self._tables[table]["thread"])).tolist())
        pairs = []
        for old in sorted(used - {0}):
            new = shared.thread_ids.take(old)
            shared.threads.append({"id": new, "name": names.get(old, "")})
            pairs.append((old, new))
        self._threads = [new for _, new in pairs]
        return Lookup(pairs)

    def _add_stacks(self, shared: _Shared) -> Lookup:
        frames = shared.frames.add(self._tables["frames"].to_pylist())
        rows = self._tables["stacks"].to_pylist()
        for row in rows:
            row["frames"] = frames.taken(np.array(row["frames"], np.int64)).tolist()
            for name in ("user_frame", "forward_frame"):
                row[name] = int(frames.taken(np.array([row[name]], np.int64))[0])
        return shared.stacks.add(rows)


def _table(name: str, rows: "list[dict[str, Any]]") -> "pa.Table":
    known = [{field: row[field] for field in schemas()[name].names} for row in rows]
    return pa.Table.from_batches([batch_of(known, schemas()[name])])
