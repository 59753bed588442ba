"""How much of the time of NCCL's collectives other work of the GPU hides, by rank and bucket."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.collective_kernels import collective_kernels
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import calls_of, durations, stacks_of
from gpuviz.analysis.processes import processes
from gpuviz.data.arrays import batch_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_FUNCTIONS = DICTIONARIES["collectives", "function"]


def hidden_collectives(recording: RecordingData) -> pa.Table:
    """Return how long collectives ran on each GPU, and for how long beside other work.

    One row for each rank, function and buffer: a bucket of gradients keeps its buffer from step to
    step. Columns: ``process``, ``device``, ``rank``, ``function``, ``bytes``, ``bucket`` (numbered
    from 1 on a GPU, in the order in which they first ran), ``site`` and ``source`` of the line that
    launched them first, ``count``, ``total_ns`` of their kernels, and ``hidden_ns``: the part in
    which other kernels or copies ran on the GPU. The time in which a kernel waits for a late rank
    counts. The line of those that torch launches in its backward pass is the one that runs it;
    without a line, ``site`` says that there is no call stack.
    """
    schema = pa.schema(
        {
            "process": pa.utf8(),
            "device": pa.int16(),
            "rank": pa.int32(),
            "function": pa.utf8(),
            "bytes": pa.int64(),
            "bucket": pa.int32(),
            "site": pa.utf8(),
            "source": pa.utf8(),
            "count": pa.int64(),
            "total_ns": pa.int64(),
            "hidden_ns": pa.int64(),
        }
    )
    parts = [(each.name, each.recording) for each in processes(recording)] or [("", recording)]
    rows = [row for name, part in parts for row in _buckets(name, part)]
    return pa.Table.from_batches([batch_of(rows, schema)])


def _buckets(process: str, recording: RecordingData) -> Iterator[dict[str, Any]]:
    tables = recording.tables
    activities, table = tables["activities"], tables["collectives"]
    kernel = collective_kernels(tables)
    known = np.flatnonzero(kernel >= 0)
    # Collectives of one group share a kernel, whose time counts once.
    kernels, first = np.unique(kernel[known], return_index=True)
    row = known[first]
    begin, device = (plain(activities[name]) for name in ("time", "device"))
    length = durations(activities)
    is_other = codes(activities["kind"], _KINDS) != _KINDS.index("range")
    is_other[kernel[known]] = False
    hidden = np.zeros(len(kernels), np.int64)
    for each in np.unique(device[kernels]):
        others = is_other & (device == each)
        busy = Intervals(begin[others], begin[others] + length[others])
        own = np.flatnonzero(device[kernels] == each)
        ran = kernels[own]
        hidden[own] = busy.within(begin[ran], begin[ran] + length[ran])
    function = codes(table["function"], _FUNCTIONS)[row]
    rank, size, buffer = (plain(table[name])[row] for name in ("rank", "bytes", "source"))
    stacks = stacks_of(tables, calls_of(tables, plain(activities["correlation"])[kernels]))
    keys = list(zip(device[kernels].tolist(), rank, function, size, buffer, strict=True))
    groups: dict[Any, list[int]] = {}
    for number in np.argsort(begin[kernels], kind="stable").tolist():
        groups.setdefault(keys[number], []).append(number)
    counts: dict[int, int] = {}
    for (on, of_rank, code, bytes_, _), members in groups.items():
        counts[on] = counts.get(on, 0) + 1
        site, source = recording.call_stacks.call_site(int(stacks[members[0]]))
        yield {
            "process": process,
            "device": on,
            "rank": int(of_rank),
            "function": _FUNCTIONS[code],
            "bytes": int(bytes_),
            "bucket": counts[on],
            "site": site,
            "source": source,
            "count": len(members),
            "total_ns": int(length[kernels[members]].sum()),
            "hidden_ns": int(hidden[members].sum()),
        }
