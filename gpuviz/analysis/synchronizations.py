"""Table of host waits: counts, times and call sites."""

from typing import Literal

import numpy as np
import pyarrow as pa

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.grouping import Groups
from gpuviz.analysis.launches import CallSites, check_by, durations, text_numbers
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts

_KINDS = DICTIONARIES["host_waits", "kind"]


def synchronizations(
    recording: RecordingData,
    by: Literal["kind", "line", "stack"] = "kind",
) -> pa.Table:
    """Return how often and how long the host was blocked, most time first.

    Each row has one ``kind`` and one ``name``, that of the CUDA call (empty if unknown). Kinds:
    ``event_synchronize``, ``stream_synchronize``, ``context_synchronize``; ``memcpy``, a
    synchronous copy from or to the host; ``pageable_memcpy``, an asynchronous copy whose call
    stages pageable memory. Queries do not block; if calls are recorded, a wait without a call was a
    query. The other columns are ``site``, ``source`` and ``stack`` of the most frequent call (as in
    `Recording.kernels`), ``count``, and ``total_ns``, ``median_ns`` and ``max_ns`` of the time the
    host was blocked. ``waiting_ns`` is the part of the total in which the host waited for earlier
    work of the GPU, ``transfer_ns`` the part during the transfer itself. Both are unknown for
    copies without an activity: these do not count, and both are null if there are no others.

    Raises:
        ValueError: ``by`` has another value.
    """
    import pyarrow.compute as pc

    check_by(by, ("kind", "line", "stack"))
    waits = derived(recording)["host_waits"]
    kinds, names = codes(waits["kind"], _KINDS).astype(np.int64), plain(waits["name"])
    call_sites = CallSites(recording, plain(waits["stack"]))
    keys = [] if by == "kind" else [call_sites.numbers(by)]
    groups = Groups([*keys, kinds, text_numbers(recording.tables, names)])
    typical = groups.typical_rows([call_sites.stacks])
    lengths = groups.values(durations(waits))
    is_known = plain(pc.is_valid(waits["waiting_ns"]).cast("int64"))
    nothing_known = groups.totals(is_known)["greatest"] == 0
    parts = {
        name: pa.array(
            groups.totals(plain(pc.fill_null(waits[name], 0)))["sum"], mask=nothing_known
        )
        for name in ("waiting_ns", "transfer_ns")
    }
    table = pa.table(
        {
            "kind": pa.array([_KINDS[kind] for kind in kinds[typical].tolist()], pa.utf8()),
            "name": pa.array(texts(recording.tables, names[typical]), pa.utf8()),
            **call_sites.columns(typical),
            "count": groups.counts,
            "total_ns": lengths["sum"],
            "median_ns": lengths["median"],
            "max_ns": lengths["greatest"],
            **parts,
        },
    )
    order = [("total_ns", "descending"), ("count", "descending"), ("kind", "ascending")]
    return table.sort_by([*order, ("name", "ascending"), ("stack", "ascending")])
