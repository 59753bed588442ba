"""One of several recordings, with the ids and times that its rows have in the merged one."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.data.arrays import numbers
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.escaping import as_unicode
from gpuviz.data.tables import ACTIONS, DEVICE_COLUMNS, schemas
from gpuviz.errors import GpuvizError
from gpuviz.merging.addresses import HIGHEST, AddressSpace, moved
from gpuviz.merging.ids import SPACES, FreeIds, Joined, Lookup, Pools, Shifted
from gpuviz.merging.placement import Placement
from gpuviz.merging.process_columns import (
    ADDRESSES,
    EVENTS,
    HOST_EVENTS,
    IDS,
    NO_ADDRESS,
    OF_THREADS,
    TIMES,
    UNTIMED,
)

_MOST_THREADS = 2**32 - 1
_MOST_DEVICES = 2**15


class Shared:
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


class Part:
    """A recording, and the ids and times of its rows in the merged one."""

    def __init__(self, placed: Placement, name: str, number: int, shared: Shared) -> None:
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
            tables["pools"].to_pylist(), distinct(plain(tables[EVENTS]["pool"])).tolist()
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

    def table(self, name: str) -> pa.Table:
        """Return a table with the ids and times of the merged recording."""
        table, schema = self._tables[name], schemas()[name]
        columns = [self._column(name, field.name, table) for field in schema]
        return pa.table(columns, schema=schema)

    def initial(self, name: str) -> int:
        """Return how many leading events of a table describe memory that existed before."""
        if name == EVENTS:
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

    def _column(self, table: str, column: str, rows: pa.Table) -> Any:
        values = rows[column]
        kind = values.type
        if column in DEVICE_COLUMNS:
            found = plain(values)
            return numbers(self._moved_devices(found), kind)
        if (table, column) in IDS:
            return numbers(self._ids[IDS[table, column]].taken(plain(values)), kind)
        if column in TIMES.get(table, ()):
            return numbers(self._moved_times(table, column, rows), kind)
        if (table, column) in ADDRESSES:
            return numbers(self._moved_addresses(table, column, rows), kind)
        return values

    def _moved_devices(self, devices: np.ndarray) -> np.ndarray:
        if not self._devices:
            return devices
        known = np.zeros(max(self._devices) + 1, np.int16)
        known[[*self._devices]] = [*self._devices.values()]
        return np.where(devices < 0, devices, known[np.maximum(devices, 0)])

    def _moved_times(self, table: str, column: str, rows: pa.Table) -> np.ndarray:
        times = plain(rows[column])
        moved = self.placed.aligned(times)
        if (table, column) in UNTIMED:
            moved = np.where(times > 0, moved, times)
        if table in {EVENTS, HOST_EVENTS}:
            # Memory that existed before is shown from the start.
            initial = self.initial(table)
            moved[:initial] = np.minimum(moved[:initial], 0)
        return moved

    def _moved_addresses(self, table: str, column: str, rows: pa.Table) -> np.ndarray:
        addresses = plain(rows[column])
        of_memory = self._has_address(rows) if table in {EVENTS, HOST_EVENTS} else addresses != 0
        return moved(addresses, self._address_shift, of_memory)

    @staticmethod
    def _has_address(events: pa.Table) -> np.ndarray:
        return ~np.isin(codes(events["action"], ACTIONS), NO_ADDRESS)

    def _address_range(self) -> tuple[int, int]:
        found, sizes = [], [1]
        for table, column in sorted(ADDRESSES):
            rows = self._tables[table]
            addresses = plain(rows[column])
            if table in {EVENTS, HOST_EVENTS}:
                addresses = addresses[self._has_address(rows)]
                sizes.append(int(plain(rows["size"]).max(initial=0)))
            found.append(addresses[(addresses != 0) & (addresses <= HIGHEST)])
        largest = [int(each.max()) for each in found if len(each)]
        smallest = [int(each.min()) for each in found if len(each)]
        return min(smallest, default=0), max(largest, default=0) + min(max(sizes), HIGHEST)

    def _add_devices(self, shared: Shared) -> dict[int, int]:
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

    def _add_threads(self, shared: Shared) -> Lookup:
        names = {row["id"]: row["name"] for row in self._tables["threads"].to_pylist()}
        used = set(names)
        for table in OF_THREADS:
            used.update(distinct(plain(self._tables[table]["thread"])).tolist())
        pairs = []
        for old in sorted(used - {0}):
            new = shared.thread_ids.take(old)
            shared.threads.append({"id": new, "name": names.get(old, "")})
            pairs.append((old, new))
        self._threads = [new for _, new in pairs]
        return Lookup(pairs)

    def _add_stacks(self, shared: Shared) -> Lookup:
        frames = shared.frames.add(self._tables["frames"].to_pylist())
        rows = self._tables["stacks"].to_pylist()
        for row in rows:
            row["frames"] = frames.taken(np.array(row["frames"], np.int64)).tolist()
            for name in ("user_frame", "forward_frame"):
                row[name] = int(frames.taken(np.array([row[name]], np.int64))[0])
        return shared.stacks.add(rows)
