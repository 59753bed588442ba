"""The waits and events of a recording, as operations."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuviz.data.codes import Code
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import DICTIONARIES, Tables
from gpuviz.hazards.host_functions import times_of_functions
from gpuviz.hazards.known_graphs import KnownGraphs
from gpuviz.hazards.operation_rows import OperationRows
from gpuviz.hazards.queries import unsuccessful

_KINDS = DICTIONARIES["synchronizations", "kind"]
# Numbers of events that stand for what functions of the host know, apart from all others.
_HOST_FUNCTIONS = 1 << 30


@dataclass(frozen=True, eq=False)
class _Synchronizations:
    """The rows of ``synchronizations``.

    Attributes:
        kind: What each is, as in ``synchronizations.kind``.
        call: Its row of ``api_calls``; -1 if there is none.
        time: When it was issued.
        device: As in the table.
        stream: As in the table.
        is_captured: Whether a capture made it.
        is_record: Whether it records an event outside of captures and graphs.
        is_known: Whether it waits for an event that was recorded since the recording began.
        event: The number of its event, if it is known or is waited for.
        is_awaited: Whether something waits for the event that it records.
    """

    kind: np.ndarray
    call: np.ndarray
    time: np.ndarray
    device: np.ndarray
    stream: np.ndarray
    is_captured: np.ndarray
    is_record: np.ndarray
    is_known: np.ndarray
    event: np.ndarray
    is_awaited: np.ndarray

    @classmethod
    def of(cls, tables: Tables, graphs: KnownGraphs) -> "_Synchronizations":
        table, calls = tables["synchronizations"], tables["api_calls"]
        kind = codes(table["kind"], _KINDS)
        call = first_rows(plain(calls["correlation"]), plain(table["correlation"]))
        time = np.where(call >= 0, np.append(plain(calls["time"]), 0)[call], plain(table["time"]))
        stream, sync_id = plain(table["stream"]), plain(table["event_sync_id"]).astype(np.int64)
        # A record without a call was made by a graph or in a capture.
        is_captured = np.isin(plain(table["correlation"]), graphs.captured)
        is_record = _are(kind, "event_record") & (call >= 0) & (stream != 0) & ~is_captured
        # CUPTI counts the records of all contexts of a process together: measured with two on a
        # GPU.
        recorded = sync_id[is_record & (sync_id != 0)]
        waits = _are(kind, "stream_wait_event") | _are(kind, "event_synchronize")
        is_known = waits & np.isin(sync_id, recorded)
        numbers = np.unique(sync_id[is_known])
        event = np.searchsorted(numbers, sync_id)
        is_awaited = is_record & np.isin(sync_id, numbers)
        device = plain(table["device"])
        return cls(
            kind, call, time, device, stream, is_captured, is_record, is_known, event, is_awaited
        )

    def add(
        self, rows: OperationRows, chosen: np.ndarray, code: Any, *names: str, **columns: Any
    ) -> None:
        """Add operations for chosen rows, with some columns of the table and others."""
        own = {name: getattr(self, name)[chosen] for name in ("call", *names)}
        others = {name: np.asarray(values)[chosen] for name, values in columns.items()}
        known = code if isinstance(code, Code) else code[chosen]
        rows.add(self.time[chosen], known, **own, **others)


def add_synchronizations(rows: OperationRows, tables: Tables, graphs: KnownGraphs) -> None:
    """Add the records of events, and the waits of streams and of the host."""
    found = _Synchronizations.of(tables, graphs)
    code = np.where(found.is_awaited, Code.RECORD_EVENT, Code.LAUNCH)
    event = np.where(found.is_awaited, found.event, 0)
    found.add(rows, found.is_record, code, "device", "stream", object=event)
    event = np.where(found.is_known, found.event, 0)
    waiting = _are(found.kind, "stream_wait_event") & ~found.is_captured
    code = np.select(
        [found.stream == 0, found.is_known],
        [Code.SYNCHRONIZE_ALL, Code.WAIT_EVENT],
        Code.WAIT_FOR_UNKNOWN,
    )
    found.add(rows, waiting, code, "device", "stream", object=event)
    is_wait = ~unsuccessful(tables, found.call, found.is_record)
    host = _are(found.kind, "event_synchronize") & is_wait
    code = np.where(found.is_known, Code.SYNCHRONIZE_EVENT, Code.SYNCHRONIZE_ALL)
    found.add(rows, host, code, object=event)
    is_stream = _are(found.kind, "stream_synchronize") & is_wait
    is_named = found.stream != 0
    found.add(rows, is_stream & is_named, Code.SYNCHRONIZE_STREAM, "device", "stream")
    whole = _are(found.kind, "context_synchronize")
    found.add(rows, whole, Code.SYNCHRONIZE_DEVICE, "device")
    found.add(rows, is_stream & ~is_named, Code.SYNCHRONIZE_ALL)


def _are(kind: np.ndarray, name: str) -> np.ndarray:
    found: np.ndarray = kind == _KINDS.index(name)
    return found


def add_host_functions(rows: OperationRows, tables: Tables) -> None:
    """Add an event before each function of the host, and that the host knows of it later."""
    call, ran = times_of_functions(tables)
    calls = tables["api_calls"]
    event = _HOST_FUNCTIONS + np.arange(len(call))
    time, stream = plain(calls["time"])[call], plain(calls["stream"])[call]
    rows.add(time, Code.RECORD_EVENT, stream=stream, object=event, call=call)
    rows.add(ran, Code.SYNCHRONIZE_EVENT, object=event)
