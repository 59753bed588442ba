"""Which rows of a merged recording are those of each process."""

from collections.abc import Mapping, Sequence
from itertools import pairwise, starmap
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.data.columns import plain, rows_at
from gpuviz.data.tables import Tables

# Not about one process, or about all.
_WHOLE = ("strings", "frames", "stacks", "launch_configurations", "pools", "clock_snapshots")


class ProcessRows:
    """The rows of all processes, found in one pass over each table.

    Args:
        tables: The tables of the merged recording.
        processes: The rows of ``processes``.
    """

    def __init__(self, tables: Tables, processes: Sequence[Mapping[str, Any]]) -> None:
        self._tables = tables
        self._count = len(processes)
        self._device, self._thread = (_Owners(name, processes) for name in ("devices", "threads"))
        self._correlation, self._address = (
            _Ranges(name, processes) for name in ("correlation", "address")
        )
        self._found = {name: self._split(name) for name in tables if name not in _WHOLE}

    def rows(self, process: int) -> dict[str, np.ndarray]:
        """Return the numbers of the rows of a process, by table."""
        return {name: rows[process] for name, (_, rows) in self._found.items()}

    def tables(self, process: int) -> dict[str, pa.Table]:
        """Return the tables of a process, with those that are about all."""
        return {
            name: self._found[name][0][process] if name in self._found else table
            for name, table in self._tables.items()
        }

    def _split(self, name: str) -> tuple[list[pa.Table], list[np.ndarray]]:
        table = self._tables[name]
        owners = self._owners(name, table)
        is_ordered = bool((owners[1:] >= owners[:-1]).all())
        order = np.arange(len(owners)) if is_ordered else np.argsort(owners, kind="stable")
        ordered = table if is_ordered else rows_at(table, order)
        ends = np.searchsorted(owners[order], np.arange(self._count + 1)).tolist()
        spans = [*starmap(slice, pairwise(ends))]
        return (
            [ordered.slice(each.start, each.stop - each.start) for each in spans],
            [order[each] for each in spans],
        )

    def _owners(self, name: str, table: pa.Table) -> np.ndarray:
        """Return the process of each row by its position; -1 for none."""
        columns = table.schema.names
        found = np.full(table.num_rows, -1)
        if name == "processes":
            return found
        if name in {"devices", "threads"}:
            return {"devices": self._device, "threads": self._thread}[name].of(plain(table["id"]))
        if "device" in columns and name != "host_memory_events":
            found = self._device.of(plain(table["device"]))
        elif "thread" in columns:
            found = self._thread.of(plain(table["thread"]))
        if name == "host_memory_events":
            # What existed before has no thread.
            found = np.where(found < 0, self._address.of(plain(table["address"])), found)
        if "correlation" in columns:
            found = np.where(found < 0, self._correlation.of(plain(table["correlation"])), found)
        return found


class _Owners:
    """The process of each device or thread."""

    def __init__(self, name: str, processes: Sequence[Mapping[str, Any]]) -> None:
        owner = {each: number for number, row in enumerate(processes) for each in row[name]}
        self._ids = np.array(sorted(owner), np.int64)
        self._owner = np.array([owner[each] for each in self._ids.tolist()], np.int64)

    def of(self, ids: np.ndarray) -> np.ndarray:
        if not len(self._ids):
            return np.full(len(ids), -1)
        place = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[place] == ids, self._owner[place], -1)


class _Ranges:
    """The process of each correlation or address, which have a range in each process."""

    def __init__(self, name: str, processes: Sequence[Mapping[str, Any]]) -> None:
        known = sorted(
            (row[f"first_{name}"], row[f"last_{name}"], number)
            for number, row in enumerate(processes)
            if row[f"first_{name}"] <= row[f"last_{name}"]
        )
        self._first = np.array([first for first, _, _ in known], np.uint64)
        self._last = np.array([last for _, last, _ in known], np.uint64)
        self._owner = np.array([number for *_, number in known], np.int64)

    def of(self, values: np.ndarray) -> np.ndarray:
        if not len(self._first):
            return np.full(len(values), -1)
        place = np.searchsorted(self._first, values.astype(np.uint64), side="right") - 1
        is_inside = (place >= 0) & (values <= self._last[place])
        return np.where(is_inside, self._owner[place], -1)
