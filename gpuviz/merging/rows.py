"""The rows of several recordings in one, with ids and times that do not collide."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.data.arrays import batch_of
from gpuviz.data.columns import plain, rows_at
from gpuviz.data.tables import schemas
from gpuviz.merging.part import Part, Shared
from gpuviz.merging.placement import Placement, process_names
from gpuviz.merging.process_columns import EVENTS, HOST_EVENTS

_JOINED = ("strings", "frames", "stacks", "launch_configurations", "pools", "threads", "devices")


class Merged:
    """The tables of several recordings as those of one.

    Rows that happened follow each other by process, except memory events, which are in the order
    of their times.
    """

    def __init__(self, placed: Sequence[Placement]) -> None:
        shared = Shared()
        self._shared = shared
        names = process_names(placed)
        self._parts = [
            Part(each, name, number, shared)
            for number, (each, name) in enumerate(zip(placed, names, strict=True), 1)
        ]

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables of the merged recording."""
        shared = self._shared
        made = {
            name: self._joined(name)
            for name in schemas()
            if name not in {EVENTS, HOST_EVENTS, "processes", "clock_snapshots", *_JOINED}
        }
        reference = self._parts[0].placed.alignment
        made["clock_snapshots"] = self._joined(
            "clock_snapshots", [each for each in self._parts if each.placed.alignment == reference]
        )
        made |= {name: self._events(name) for name in (EVENTS, HOST_EVENTS)}
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

    def _joined(self, name: str, parts: Iterable[Part] | None = None) -> pa.Table:
        parts = self._parts if parts is None else parts
        tables = [each.table(name) for each in parts if each.has(name)]
        # One chunk, since each analysis joins the chunks of a column again.
        whole = pa.concat_tables([schemas()[name].empty_table(), *tables])
        return whole.unify_dictionaries().combine_chunks()

    def _events(self, name: str) -> pa.Table:
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


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    known = [{field: row[field] for field in schemas()[name].names} for row in rows]
    return pa.Table.from_batches([batch_of(known, schemas()[name])])
