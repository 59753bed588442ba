"""Rows of activities, CUDA calls and synchronizations as columns for the native core."""

from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.calls import ON_DEVICE, call_kinds
from gpuviz.data.codes import Work
from gpuviz.data.columns import codes, plain
from gpuviz.data.event_times import event_times
from gpuviz.data.tables import DICTIONARIES, Tables


def timed_activities(tables: Tables) -> dict[str, np.ndarray]:
    """Return the columns of activities for the native core, without ranges on streams."""
    table = tables["activities"]
    known = DICTIONARIES["activities", "kind"]
    kinds = codes(table["kind"], known)
    names = ("time", "end", "device", "stream", "correlation")
    columns = {name: plain(table[name]) for name in names}
    work_of = np.full(len(known) + 1, Work.OTHER, np.uint8)
    work_of[known.index("kernel")] = Work.KERNEL
    work_of[known.index("memcpy")] = Work.COPY
    columns["work"] = work_of[kinds]
    columns["work"][(kinds == known.index("memcpy")) & are_on_device(table)] = Work.DEVICE_COPY
    ranges = kinds == known.index("range")
    if ranges.any():
        return {name: column[~ranges] for name, column in columns.items()}
    return columns


def are_on_device(activities: pa.Table) -> np.ndarray:
    """Return which copies are within or between devices."""
    known = DICTIONARIES["activities", "copy_kind"]
    kinds: np.ndarray = np.isin(
        codes(activities["copy_kind"], known), [known.index(kind) for kind in ON_DEVICE]
    )
    return kinds


def timed_calls(tables: Tables) -> dict[str, np.ndarray]:
    """Return the columns of CUDA calls for the native core."""
    table = tables["api_calls"]
    names = ("time", "end", "thread", "correlation")
    return {name: plain(table[name]) for name in names} | {"kind": call_kinds(tables)}


def timed_synchronizations(tables: Tables) -> dict[str, np.ndarray]:
    """Return the columns of records and waits for the native core, with `event_times`."""
    table = tables["synchronizations"]
    kinds = codes(table["kind"], DICTIONARIES["synchronizations", "kind"])
    names = ("time", "end", "stream", "event_sync_id", "correlation")
    columns: dict[str, Any] = {name: plain(table[name]) for name in names}
    columns["kind"] = kinds.astype(np.uint8)
    columns["time"] = event_times(tables)
    return columns
