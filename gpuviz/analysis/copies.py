"""Copy table of a recording: bytes, times and bandwidth."""

from typing import Literal

import numpy as np
import pyarrow as pa

from gpuviz.analysis.grouping import Groups
from gpuviz.analysis.launches import CallSites, calls_of, check_by, durations, stacks_of
from gpuviz.analysis.peer_copies import peer_copies
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_MEMORIES = DICTIONARIES["activities", "host_memory"]
_STAGED = "staged"


def copies(
    recording: RecordingData,
    by: Literal["kind", "line", "stack"] = "kind",
) -> pa.Table:
    """Return counts, bytes and times of copies by kind, line or call stack, most time first.

    Each row has one ``copy_kind`` and one ``host_memory`` (``pageable``, ``pinned`` or ``managed``;
    empty for copies without host memory, and if unknown). A copy between GPUs that goes through the
    host counts once, as ``peer_to_peer`` with the ``host_memory`` ``staged``. The other columns are
    ``site``, ``source`` and ``stack`` of the most frequent launch, ``sites`` (as in
    `Recording.kernels`), ``count``, ``bytes``, ``total_ns``, ``median_ns``, and
    ``bytes_per_second``: bytes / total time, null if that is 0. In a window of a recording,
    ``total_ns`` and ``median_ns`` are of the time in it; bytes and speeds are those of whole
    copies.

    Raises:
        ValueError: ``by`` has another value.
    """
    check_by(by, ("kind", "line", "stack"))
    rows, is_staged = _whole_copies(recording)
    calls = calls_of(recording.tables, plain(rows["correlation"]))
    call_sites = CallSites(recording, stacks_of(recording.tables, calls))
    copy_kinds = codes(rows["copy_kind"], _COPY_KINDS).copy()
    memories = codes(rows["host_memory"], _MEMORIES).copy()
    copy_kinds[is_staged] = _COPY_KINDS.index("peer_to_peer")
    memories[is_staged] = len(_MEMORIES)
    keys = [] if by == "kind" else [call_sites.numbers(by)]
    groups = Groups([*keys, copy_kinds, memories])
    typical = groups.typical_rows([call_sites.stacks])
    lengths = groups.values(durations(rows, recording.bounds))
    sizes = groups.totals(plain(rows["bytes"]))["sum"]
    whole = groups.totals(durations(rows))["sum"]
    speeds = sizes * 1e9 / np.maximum(whole, 1)
    table = pa.table(
        {
            "copy_kind": _names(_COPY_KINDS, copy_kinds[typical]),
            "host_memory": _names((*_MEMORIES, _STAGED), memories[typical]),
            **call_sites.columns(typical),
            "sites": call_sites.lists(groups.distinct(call_sites.numbers("line"))),
            "count": groups.counts,
            "bytes": sizes,
            "total_ns": lengths["sum"],
            "median_ns": lengths["median"],
            "bytes_per_second": pa.array(speeds, pa.float64(), mask=whole == 0),
        },
    )
    order = [("total_ns", "descending"), ("bytes", "descending"), ("copy_kind", "ascending")]
    return table.sort_by([*order, ("host_memory", "ascending"), ("stack", "ascending")])


def _whole_copies(recording: RecordingData) -> tuple[pa.Table, np.ndarray]:
    """Return the rows of copies, and which of them go from GPU to GPU through the host.

    Of these, one row has the time of the whole copy.
    """
    activities = recording.tables["activities"]
    kinds = DICTIONARIES["activities", "kind"]
    is_copy = codes(activities["kind"], kinds) == kinds.index("memcpy")
    between = peer_copies(recording.tables)
    staged = between.among(between.is_staged)
    is_copy[staged.arrival] = False
    end = plain(activities["end"]).copy()
    end[staged.activity] = staged.end
    whole = with_columns(activities, end=end)
    rows = np.flatnonzero(is_copy)
    return whole.take(rows), np.isin(rows, staged.activity)


def _names(known: tuple[str, ...], positions: np.ndarray) -> pa.Array:
    return pa.array([known[n] if n >= 0 else "" for n in positions.tolist()], pa.utf8())
