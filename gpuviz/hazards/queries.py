"""Queries of events and streams that did not return success."""

import numpy as np

from gpuviz.analysis.calls import kind_of_name
from gpuviz.data.codes import CallKind
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES, Tables

_SYNCHRONIZATIONS = DICTIONARIES["synchronizations", "kind"]
# The clocks of the host and of the GPU agree to this, in ns.
CLOCKS_AGREE = 20_000


def unsuccessful(tables: Tables, call: np.ndarray, is_record: np.ndarray) -> np.ndarray:
    """Return a mask of the queries of work that the GPU ended only later.

    A row does not say whether a query returned success. It did not if the work ended clearly later;
    where that is unknown, the query counts as a wait.
    """
    table = tables["synchronizations"]
    names = np.append(plain(tables["api_calls"]["name"]), 0)[call]
    distinct = np.unique(names)
    kinds = [kind_of_name(text) for text in texts(tables, distinct)]
    is_query = (call < 0) | np.isin(names, distinct[[kind == CallKind.QUERY for kind in kinds]])
    sync_id, time = plain(table["event_sync_id"]).astype(np.int64), plain(table["time"])
    records = np.flatnonzero(is_record)
    record = first_rows(sync_id[records], sync_id)
    ended = np.where(record >= 0, np.append(time[records], 0)[record], 0)
    streams = plain(table["stream"])
    of_stream = codes(table["kind"], _SYNCHRONIZATIONS) == _SYNCHRONIZATIONS.index(
        "stream_synchronize"
    )
    for stream in np.unique(streams[is_query & of_stream]).tolist():
        rows = np.flatnonzero(is_query & of_stream & (streams == stream))
        ended[rows] = _last_end(tables, stream, time[rows])
    late: np.ndarray = is_query & (ended > plain(table["end"]) + CLOCKS_AGREE)
    return late


def _last_end(tables: Tables, stream: int, moments: np.ndarray) -> np.ndarray:
    """Return when the work ended that a stream had been given before some moments; 0 if none."""
    activities, calls = tables["activities"], tables["api_calls"]
    call = first_rows(plain(calls["correlation"]), plain(activities["correlation"]))
    rows = np.flatnonzero((plain(activities["stream"]) == stream) & (call >= 0))
    launched = plain(calls["time"])[call[rows]]
    order = np.argsort(launched)
    ends = np.maximum.accumulate(plain(activities["end"])[rows[order]])
    found: np.ndarray = np.append(0, ends)[np.searchsorted(launched[order], moments)]
    return found
