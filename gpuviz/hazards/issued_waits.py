"""The waits and events of a recording, as operations."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.data.codes import Code
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import DICTIONARIES
from gpuviz.hazards.host_functions import times_of_functions
from gpuviz.hazards.known_graphs import KnownGraphs
from gpuviz.hazards.operation_rows import OperationRows
from gpuviz.hazards.queries import unsuccessful

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    Tables = Mapping[str, pa.Table]

_SYNCHRONIZATIONS = DICTIONARIES["synchronizations", "kind"]
# Numbers of events that stand for what functions of the host know, apart from all others.
_HOST_FUNCTIONS = 1 << 30


def add_synchronizations(rows: OperationRows, tables: "Tables", graphs: KnownGraphs) -> None:
    """Add the records of events, and the waits of streams and of the host."""
    table, calls = tables["synchronizations"], tables["api_calls"]
    kind = codes(table["kind"], _SYNCHRONIZATIONS)
    call = first_rows(plain(calls["correlation"]), plain(table["correlation"]))
    time = np.where(call >= 0, np.append(plain(calls["time"]), 0)[call], plain(table["time"]))
    device, stream = plain(table["device"]), plain(table["stream"])
    sync_id = plain(table["event_sync_id"]).astype(np.int64)

    def rows_of(name: str) -> "NDArray[Any]":
        found: NDArray[Any] = kind == _SYNCHRONIZATIONS.index(name)
        return found

    # A record without a call was made by a graph or in a capture.
    is_captured = np.isin(plain(table["correlation"]), graphs.captured)
    is_record = rows_of("event_record") & (call >= 0) & (stream != 0) & ~is_captured
    # CUPTI counts the records of all contexts of a process together: measured with two on a GPU.
    recorded = sync_id[is_record & (sync_id != 0)]
    waits = rows_of("stream_wait_event") | rows_of("event_synchronize")
    is_known = waits & np.isin(sync_id, recorded)
    numbers = np.unique(sync_id[is_known])
    event = np.searchsorted(numbers, sync_id)
    is_awaited = is_record & np.isin(sync_id, numbers)
    rows.add(
        time[is_record],
        np.where(is_awaited, Code.RECORD_EVENT, Code.LAUNCH)[is_record],
        device=device[is_record],
        stream=stream[is_record],
        object=np.where(is_awaited, event, 0)[is_record],
        call=call[is_record],
    )
    waiting = rows_of("stream_wait_event") & ~is_captured
    rows.add(
        time[waiting],
        np.select(
            [stream == 0, is_known], [Code.SYNCHRONIZE_ALL, Code.WAIT_EVENT],
            Code.WAIT_FOR_UNKNOWN,
        )[waiting],
        device=device[waiting],
        stream=stream[waiting],
        object=np.where(is_known, event, 0)[waiting],
        call=call[waiting],
    )  # fmt: skip
    is_wait = ~unsuccessful(tables, call, is_record)
    host = rows_of("event_synchronize") & is_wait
    rows.add(
        time[host],
        np.where(is_known, Code.SYNCHRONIZE_EVENT, Code.SYNCHRONIZE_ALL)[host],
        object=np.where(is_known, event, 0)[host],
        call=call[host],
    )
    is_stream = rows_of("stream_synchronize") & is_wait
    known = np.flatnonzero(is_stream & (stream != 0))
    rows.add(
        time[known],
        Code.SYNCHRONIZE_STREAM,
        device=device[known],
        stream=stream[known],
        call=call[known],
    )
    whole = rows_of("context_synchronize")
    rows.add(time[whole], Code.SYNCHRONIZE_DEVICE, device=device[whole], call=call[whole])
    unknown = is_stream & (stream == 0)
    rows.add(time[unknown], Code.SYNCHRONIZE_ALL, call=call[unknown])


def add_host_functions(rows: OperationRows, tables: "Tables") -> None:
    """Add an event before each function of the host, and that the host knows of it later."""
    call, ran = times_of_functions(tables)
    calls = tables["api_calls"]
    event = _HOST_FUNCTIONS + np.arange(len(call))
    time, stream = plain(calls["time"])[call], plain(calls["stream"])[call]
    rows.add(time, Code.RECORD_EVENT, stream=stream, object=event, call=call)
    rows.add(ran, Code.SYNCHRONIZE_EVENT, object=event)
