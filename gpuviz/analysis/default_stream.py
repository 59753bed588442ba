"""Work on the legacy default stream, by line of the program."""

from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.grouping import Groups
from gpuviz.analysis.launches import CallSites, calls_of, durations, stacks_of
from gpuviz.data.arrays import batch_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_STREAM_KINDS = DICTIONARIES["streams", "kind"]


def default_stream_work(recording: RecordingData) -> pa.Table:
    """Return the launches, copies and memsets on the legacy default stream, most first.

    One row for each device, line of the program and kind. Columns: ``device``, ``kind`` (as in
    ``activities``; a graph is what its first node is), ``site``, ``source``, ``stack``, ``count``
    of calls, ``total_ns`` of the time on the GPU. Per-thread default streams are others.
    """
    schema = pa.schema(
        {
            "device": pa.int16(),
            "kind": pa.utf8(),
            "site": pa.utf8(),
            "source": pa.utf8(),
            "stack": pa.uint32(),
            "count": pa.int64(),
            "total_ns": pa.int64(),
        }
    )
    return pa.Table.from_batches([batch_of(default_stream_rows(recording), schema)])


def default_stream_rows(recording: RecordingData) -> list[dict[str, Any]]:
    """Return the rows of `default_stream_work`, without an import: also while Python exits."""
    tables = recording.tables
    streams, activities = tables["streams"], tables["activities"]
    is_default = codes(streams["kind"], _STREAM_KINDS) == _STREAM_KINDS.index("default")
    kind = codes(activities["kind"], _KINDS)
    chosen = np.isin(plain(activities["stream"]), plain(streams["id"])[is_default])
    rows = np.flatnonzero(chosen & (kind != _KINDS.index("range")))
    correlation = plain(activities["correlation"])[rows]
    call_sites = CallSites(recording, stacks_of(tables, calls_of(tables, correlation)))
    # The nodes of a graph have one call.
    is_first = first_rows(correlation, correlation) == np.arange(len(rows))
    is_call = is_first | (correlation == 0)
    device = plain(activities["device"])[rows]
    groups = Groups([call_sites.numbers("line"), kind[rows], device])
    typical = groups.typical_rows([call_sites.stacks])
    columns = {
        "device": device[typical],
        "kind": kind[rows][typical],
        "stack": call_sites.stacks[typical],
        "count": groups.totals(is_call.astype(np.int64))["sum"],
        "total_ns": groups.totals(durations(activities, recording.bounds)[rows])["sum"],
    }
    found = [
        dict(zip(columns, values, strict=True))
        for values in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
    for row in found:
        row["kind"] = _KINDS[row["kind"]]
        row["site"], row["source"] = recording.call_stacks.call_site(row["stack"])
    return sorted(found, key=lambda row: (-row["count"], -row["total_ns"], row["site"]))
