"""Copies between GPUs that go through the host, as rows of ``activities``."""

import numpy as np
import pyarrow as pa

from gpuviz.data.arrays import coded, with_columns
from gpuviz.data.columns import codes, plain
from gpuviz.data.event_times import event_times
from gpuviz.data.first_rows import first_rows
from gpuviz.data.stream_handle import NO_HANDLE
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES, Tables, schemas

_KINDS = DICTIONARIES["activities", "kind"]
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_MEMORIES = DICTIONARIES["activities", "source"]
_SYNCHRONIZATIONS = DICTIONARIES["synchronizations", "kind"]
# Drivers stage in pieces of this size, and CUPTI's times are those of the last one: measured on two
# H100 with driver 580.
_PIECE_BYTES = 1 << 20
_HALVES = ("peer_to_host", "host_to_peer")
_HAS_HOST = ("HtoD", "DtoH")


def with_staged_copies(tables: Tables) -> dict[str, pa.Table]:
    """Return the tables with the halves of copies between GPUs marked as such.

    Without peer access, CUPTI reports such a copy as one from the source to the host and one from
    the host to the destination: with one correlation, equal bytes, and device memory at both ends
    of both. They become ``peer_to_host`` and ``host_to_peer`` rows with both devices, and their
    call gets its stream, which runs one of the halves; the driver's own stream runs the other.

    CUPTI's times are those of the last piece, so that the halves of a large copy begin when
    everything was done that it had to wait for: its call had begun, and earlier work of its stream
    and the events that its stream waited for had ended.
    """
    tables = dict(tables)
    pair = _pairs(tables)
    if pair is None:
        return tables
    out, into = pair
    activities = tables["activities"]
    columns = {
        name: plain(activities[name]).copy()
        for name in ("time", "source_device", "destination_device")
    }
    device = plain(activities["device"])
    kind = codes(activities["copy_kind"], _COPY_KINDS).copy()
    kind[out], kind[into] = (_COPY_KINDS.index(name) for name in _HALVES)
    for half in (out, into):
        columns["source_device"][half] = device[out]
        columns["destination_device"][half] = device[into]
    tables["api_calls"], stream = _with_streams(tables, out, into)
    begin = _begins(tables, out, stream)
    lag = columns["time"][into] - columns["time"][out]
    columns["time"][into] = begin + lag
    columns["time"][out] = begin
    activities = with_columns(activities, **columns)
    place = activities.schema.get_field_index("copy_kind")
    field = schemas()["activities"].field("copy_kind")
    tables["activities"] = activities.set_column(place, field, coded(kind, _COPY_KINDS))
    return tables


def _pairs(tables: Tables) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the rows of the halves at the sources and at the destinations; None without any."""
    activities = tables["activities"]
    on_device = _MEMORIES.index("device")
    is_half = codes(activities["kind"], _KINDS) == _KINDS.index("memcpy")
    for side in ("source", "destination"):
        is_half &= codes(activities[side], _MEMORIES) == on_device
    copy_kind = codes(activities["copy_kind"], _COPY_KINDS)
    is_out = copy_kind == _COPY_KINDS.index("device_to_host")
    is_half &= is_out | (copy_kind == _COPY_KINDS.index("host_to_device"))
    correlation = plain(activities["correlation"])
    rows = np.flatnonzero(is_half & (correlation != 0))
    if not len(rows):
        return None
    rows = rows[np.lexsort((~is_out[rows], correlation[rows]))]
    _, first, count = np.unique(correlation[rows], return_index=True, return_counts=True)
    place = first[count == len(_HALVES)]
    out, into = rows[place], rows[place + 1]
    bytes_, device = plain(activities["bytes"]), plain(activities["device"])
    is_pair = is_out[out] & ~is_out[into] & (bytes_[out] == bytes_[into])
    is_pair &= device[out] != device[into]
    calls = tables["api_calls"]
    call = first_rows(plain(calls["correlation"]), correlation[out])
    names = np.append(plain(calls["name"]), 0)[call]
    distinct = np.unique(names)
    other = [any(part in text for part in _HAS_HOST) for text in texts(tables, distinct)]
    is_pair &= ~np.isin(names, distinct[other])
    return (out[is_pair], into[is_pair]) if is_pair.any() else None


def _with_streams(tables: Tables, out: np.ndarray, into: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    """Return ``api_calls`` with the stream of each copy, and these streams."""
    calls, streams = tables["api_calls"], tables["streams"]
    running = plain(tables["activities"]["stream"])
    own = plain(streams["id"])[plain(streams["handle"]) == NO_HANDLE]
    stream = np.where(np.isin(running[out], own), running[into], running[out])
    call = first_rows(plain(calls["correlation"]), plain(tables["activities"]["correlation"])[out])
    of_call = np.append(plain(calls["stream"]), 0)
    stream = np.where(of_call[call] != 0, of_call[call], stream).astype(np.uint32)
    of_call[call] = stream
    return with_columns(calls, stream=of_call[:-1]), stream


def _begins(tables: Tables, out: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """Return when the first piece of each copy was on its way, at the earliest."""
    activities, calls = tables["activities"], tables["api_calls"]
    waits = tables["synchronizations"]
    begin: np.ndarray = plain(activities["time"])[out].copy()
    large = np.flatnonzero(plain(activities["bytes"])[out] > _PIECE_BYTES)
    if not len(large):
        return begin
    correlation = plain(activities["correlation"])
    own = correlation[out][large]
    call = first_rows(plain(calls["correlation"]), own)
    earliest = np.append(plain(calls["time"]), 0)[call]
    kind = codes(waits["kind"], _SYNCHRONIZATIONS)
    sync_id, time = plain(waits["event_sync_id"]).astype(np.int64), event_times(tables)
    records = np.flatnonzero(kind == _SYNCHRONIZATIONS.index("event_record"))
    waiting = np.flatnonzero(kind == _SYNCHRONIZATIONS.index("stream_wait_event"))
    recorded = first_rows(sync_id[records], sync_id[waiting])
    reached = np.append(time[records], 0)[recorded]
    for streams, correlations, ends in (
        (plain(activities["stream"]), correlation, plain(activities["end"])),
        (plain(waits["stream"])[waiting], plain(waits["correlation"])[waiting], reached),
    ):
        for each in np.unique(stream[large]):
            rows = np.flatnonzero((streams == each) & (correlations != 0))
            rows = rows[np.argsort(correlations[rows], kind="stable")]
            latest = np.append(np.maximum.accumulate(ends[rows]), 0)
            before = np.searchsorted(correlations[rows], own) - 1
            is_own = stream[large] == each
            earliest = np.where(is_own, np.maximum(earliest, latest[before]), earliest)
    begin[large] = np.minimum(begin[large], earliest)
    return begin
