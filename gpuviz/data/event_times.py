"""When the GPU reached the records and waits of ``synchronizations``."""

from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import DICTIONARIES, Tables

_KINDS = DICTIONARIES["activities", "kind"]


def event_times(tables: Tables) -> np.ndarray:
    """Return the time of each row of ``synchronizations``, in ns.

    That of a record is when the GPU reached it. Where that was not recorded, it is the latest of
    its call, the ends of the activities launched before on its stream, and the times of the records
    that its stream had to wait for before; 0 if none of these is known. A copy between devices
    belongs to the stream that it was issued on.
    """
    rows = codes(tables["activities"]["kind"], _KINDS) != _KINDS.index("range")
    activities = _columns(tables["activities"], ("time", "end", "device", "correlation"), rows)
    activities["stream"] = _issued_on(tables)[rows]
    activities["work"] = np.zeros(len(activities["time"]), np.uint8)
    calls = _columns(tables["api_calls"], ("time", "end", "thread", "correlation"))
    calls["kind"] = np.zeros(len(calls["time"]), np.uint8)
    table = tables["synchronizations"]
    waits = _columns(table, ("time", "end", "stream", "event_sync_id", "correlation"))
    kinds = codes(table["kind"], DICTIONARIES["synchronizations", "kind"])
    waits["kind"] = kinds.astype(np.uint8)
    times: Any = _core.event_times(activities, calls, waits)
    return np.asarray(times)


def _columns(
    table: pa.Table, names: tuple[str, ...], rows: np.ndarray | slice = slice(None)
) -> dict[str, np.ndarray]:
    return {name: plain(table[name])[rows] for name in names}


def _issued_on(tables: Tables) -> np.ndarray:
    """Return the streams that order activities, which need not be those that ran them."""
    activities, calls = tables["activities"], tables["api_calls"]
    streams, of_call = plain(activities["stream"]), plain(calls["stream"])
    if not of_call.any():
        return streams
    copies = np.flatnonzero(codes(activities["kind"], _KINDS) == _KINDS.index("memcpy"))
    call = first_rows(plain(calls["correlation"]), plain(activities["correlation"])[copies])
    issued = np.append(of_call, 0)[call]
    found: np.ndarray = streams.copy()
    found[copies[issued != 0]] = issued[issued != 0]
    return found
