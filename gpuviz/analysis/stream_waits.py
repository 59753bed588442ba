"""Waits of streams for events of other streams, and the records that they wait for."""

from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.timed_rows import timed_synchronizations
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.tables import DICTIONARIES, Tables

_SYNCHRONIZATION_KINDS = DICTIONARIES["synchronizations", "kind"]


def stream_waits(tables: Tables) -> dict[str, Any]:
    """Return each wait of a stream for an event of another stream, in the order of the waits.

    They are the columns of the table ``stream_waits``.
    """
    table = tables["synchronizations"]
    kinds = codes(table["kind"], _SYNCHRONIZATION_KINDS)
    streams = plain(table["stream"])
    waits = np.flatnonzero(kinds == _SYNCHRONIZATION_KINDS.index("stream_wait_event"))
    records = np.flatnonzero(kinds == _SYNCHRONIZATION_KINDS.index("event_record"))
    found = records_of(table, records, waits)
    chosen = (found >= 0) & (streams[found] != streams[waits])
    record, wait = found[chosen], waits[chosen]
    orders = _Launches(tables, distinct(streams[wait]))
    called, times = plain(table["correlation"]), timed_synchronizations(tables)["time"]
    recorded = times[record]
    resumed = np.maximum(times[wait], recorded)
    after = orders.first_after(streams[wait], called[wait])
    resumed[after >= 0] = plain(tables["activities"]["time"])[after[after >= 0]]
    return {
        "recorded_stream": streams[record],
        "recorded_time": recorded,
        "waiting_stream": streams[wait],
        "resumed_time": resumed,
        "record": record,
        "wait": wait,
    }


def records_of(
    table: pa.Table,
    records: np.ndarray,
    waits: np.ndarray,
) -> np.ndarray:
    """Return the row of the record of each wait, the last one if there are several; -1 if unknown.

    A record and its wait have the same sync id. Without one, it is the latest record of the event
    that was called before the wait.
    """
    found = np.full(len(waits), -1)
    if not records.size:
        return found
    ids = plain(table["event_sync_id"])
    order = np.argsort(ids[records], kind="stable")
    last = np.searchsorted(ids[records], ids[waits], side="right", sorter=order) - 1
    named = records[order[last]]
    joined = (last >= 0) & (ids[waits] != 0) & (ids[named] == ids[waits])
    found[joined] = named[joined]
    events, called = plain(table["event"]), plain(table["correlation"])
    latest = _Ordered(events[records], called[records]).last_until(events[waits], called[waits])
    unnamed = (ids[waits] == 0) & (latest >= 0)
    found[unnamed] = records[latest[unnamed]]
    return found


class _Ordered:
    """Rows by key, in the order of their calls; rows with call 0 are excluded."""

    def __init__(self, keys: np.ndarray, calls: np.ndarray) -> None:
        rows = np.flatnonzero(calls != 0)
        combined = _combined(keys[rows], calls[rows])
        order = np.argsort(combined, kind="stable")
        self._rows = rows[order]
        self._combined = combined[order]

    def last_until(self, keys: np.ndarray, calls: np.ndarray) -> np.ndarray:
        """Return the last row of each key up to a call; -1 if there is none."""
        places = self._places(keys, calls) - 1
        return self._rows_at(places, keys)

    def first_after(self, keys: np.ndarray, calls: np.ndarray) -> np.ndarray:
        """Return the first row of each key after a call; -1 if there is none."""
        return self._rows_at(self._places(keys, calls), keys)

    def _places(self, keys: np.ndarray, calls: np.ndarray) -> np.ndarray:
        return np.searchsorted(self._combined, _combined(keys, calls), side="right")

    def _rows_at(self, places: np.ndarray, keys: np.ndarray) -> np.ndarray:
        found = np.full(len(places), -1)
        there = np.flatnonzero((places >= 0) & (places < len(self._rows)))
        same = self._combined[places[there]] >> np.uint64(32) == keys[there]
        found[there[same]] = self._rows[places[there[same]]]
        return found


class _Launches:
    """The activities of some streams, in launch order."""

    def __init__(self, tables: Tables, streams: np.ndarray) -> None:
        activities = tables["activities"]
        of_all = plain(activities["stream"])
        self._rows = np.flatnonzero(np.isin(of_all, streams)) if streams.size else np.zeros(0, int)
        calls = plain(activities["correlation"])[self._rows]
        self._ordered = _Ordered(of_all[self._rows], calls)

    def first_after(self, streams: np.ndarray, calls: np.ndarray) -> np.ndarray:
        """Return the row of the first activity launched on each stream after a call; -1 if none."""
        found: np.ndarray = np.append(self._rows, -1)[self._ordered.first_after(streams, calls)]
        return found


def _combined(keys: np.ndarray, calls: np.ndarray) -> np.ndarray:
    combined: np.ndarray = (keys.astype(np.uint64) << np.uint64(32)) | calls.astype(np.uint64)
    return combined
