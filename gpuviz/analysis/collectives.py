"""The collectives of all ranks, matched: who came last, and how long the others waited."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.collective_kernels import collective_kernels
from gpuviz.analysis.processes import processes
from gpuviz.data.arrays import batch_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_FUNCTIONS = DICTIONARIES["collectives", "function"]
# Nothing counts these in a communicator, so they have no counterparts.
_UNMATCHED = [_FUNCTIONS.index(name) for name in ("unknown", "send", "receive")]
UNKNOWN = -1
# A damaged file can have longer times.
_MOST_NS = 2**63 - 1


def collectives(recording: RecordingData) -> pa.Table:
    """Return the collectives of NCCL, one row for the calls of all ranks, in order of time.

    Columns: ``time`` when the first rank began, ``function``, ``communicator``, ``sequence``,
    ``bytes`` of a rank, ``ranks`` of the communicator, ``recorded`` ranks and their ``starts`` in
    ns, how many ranks are ``missing``, ``clock``, ``last_rank``, ``last_process``, ``late_ns``,
    ``waited_ns`` and ``error_ns``. Transfers between two ranks are left out.

    With the ``clock`` ``gpu`` the starts are those of NCCL's kernels. It is ``host`` if the kernel
    of a rank is not known; the starts are then when NCCL had launched, and the kernels may have
    started later.

    ``last_rank`` started ``late_ns`` after the one before it, and ``waited_ns`` is the sum of the
    times that the kernels of the others had run by then. Where ranks are on several hosts,
    ``error_ns`` is the bound of the error between their clocks (-1 if unknown): nobody is last by
    less. ``last_rank`` is -1, ``last_process`` empty, and ``waited_ns`` -1 if unknown: a rank is
    missing, the difference is within the error, or, for ``waited_ns``, the clock is the host's.
    ``last_process`` is the name of the rank's process in a merged recording.
    """
    schema = pa.schema(
        {
            "time": pa.int64(),
            "function": pa.utf8(),
            "communicator": pa.uint64(),
            "sequence": pa.uint64(),
            "bytes": pa.int64(),
            "ranks": pa.int32(),
            "recorded": pa.list_(pa.int32()),
            "starts": pa.list_(pa.int64()),
            "missing": pa.int32(),
            "clock": pa.utf8(),
            "last_rank": pa.int32(),
            "last_process": pa.utf8(),
            "late_ns": pa.int64(),
            "waited_ns": pa.int64(),
            "error_ns": pa.int64(),
        }
    )
    rows = sorted(_matched(recording), key=lambda row: row["time"])
    return pa.Table.from_batches([batch_of(rows, schema)])


@dataclass(frozen=True, slots=True)
class LateRank:
    """How often a rank came last.

    Attributes:
        name: The name of its process, else its rank.
        count: In how many collectives.
        late_ns: How much later than the rank before it, in all of them.
        waited_ns: How long the others waited for it, in all of them and all together, as far as
            it is known.
    """

    name: str
    count: int
    late_ns: int
    waited_ns: int


known_collectives = Once(collectives)


def late_ranks(rows: Sequence[dict[str, Any]]) -> list[LateRank]:
    """Return the ranks that came last, most often first, from the rows of `collectives`."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["last_rank"] != UNKNOWN:
            found[row["last_process"] or f"rank {row['last_rank']}"].append(row)
    ranks = [
        LateRank(
            name,
            len(own),
            sum(row["late_ns"] for row in own),
            sum(max(row["waited_ns"], 0) for row in own),
        )
        for name, own in found.items()
    ]
    return sorted(ranks, key=lambda each: (-each.count, -each.waited_ns, each.name))


@dataclass(frozen=True, slots=True)
class _Process:
    """What is known of a row's process: its host and the bound of the error of its clock."""

    name: str
    host: str
    error: int

    def error_to(self, other: "_Process") -> int:
        """Return the bound of the error between two clocks, in ns; -1 if unknown."""
        if self.host == other.host:
            return 0
        if UNKNOWN in {self.error, other.error}:
            return UNKNOWN
        return min(self.error + other.error, _MOST_NS)


def _matched(recording: RecordingData) -> Iterator[dict[str, Any]]:
    table = recording.tables["collectives"]
    function = codes(table["function"], _FUNCTIONS)
    chosen = np.flatnonzero(~np.isin(function, _UNMATCHED))
    kernel = collective_kernels(recording.tables)
    begin = np.append(plain(recording.tables["activities"]["time"]), 0)[kernel]
    columns = {
        "function": function,
        "on_gpu": kernel >= 0,
        "kernel_start": begin,
        "process": _processes_of(recording, table.num_rows),
        **{
            name: plain(table[name])
            for name in ("time", "communicator", "sequence", "bytes", "rank", "ranks")
        },
    }
    keys = [columns[name][chosen] for name in ("time", "rank", "sequence", "function")]
    order = chosen[np.lexsort((*keys, columns["communicator"][chosen]))]
    taken = {name: column[order] for name, column in columns.items()}
    same = np.ones(max(len(order) - 1, 0), bool)
    for name in ("communicator", "function", "sequence"):
        same &= taken[name][1:] == taken[name][:-1]
    bounds = [0, *(np.flatnonzero(~same) + 1).tolist(), len(order)]
    lists = {name: column.tolist() for name, column in taken.items()}
    processes = _processes(recording)
    for first, last in pairwise(bounds):
        if first < last:
            part = {name: values[first:last] for name, values in lists.items()}
            yield _row(part, [processes[number] for number in part["process"]])


def _row(part: dict[str, list[Any]], processes: list[_Process]) -> dict[str, Any]:
    """Return the row of a collective from the rows of its ranks."""
    ranks = part["ranks"][0]
    is_on_gpu = all(part["on_gpu"])
    starts = part["kernel_start"] if is_on_gpu else part["time"]
    own = dict(zip(part["rank"], starts, strict=True))
    row = {
        "time": min(starts),
        "function": _FUNCTIONS[part["function"][0]],
        "communicator": part["communicator"][0],
        "sequence": part["sequence"][0],
        "bytes": max(part["bytes"]),
        "ranks": ranks,
        "recorded": sorted(own),
        "starts": [own[rank] for rank in sorted(own)],
        "missing": max(ranks - len(own), 0),
        "clock": "gpu" if is_on_gpu else "host",
    }
    # A graph that is launched again repeats its rows, so nothing relates those of two ranks.
    is_whole = len(own) == len(starts) == ranks > 1
    return row | _last(part["rank"], starts, processes, is_on_gpu=is_on_gpu, is_whole=is_whole)


def _last(
    ranks: list[int],
    starts: list[int],
    processes: list[_Process],
    *,
    is_on_gpu: bool,
    is_whole: bool,
) -> dict[str, Any]:
    """Return the columns about the last rank."""
    latest = max(range(len(starts)), key=starts.__getitem__)
    errors = [processes[latest].error_to(each) for each in processes]
    lead = [starts[latest] - start for start in starts]
    others = [place for place in range(len(starts)) if place != latest]
    late = min((lead[place] for place in others), default=UNKNOWN)
    is_last = is_whole and all(lead[place] > errors[place] >= 0 for place in others)
    return {
        "last_rank": ranks[latest] if is_last else UNKNOWN,
        "last_process": processes[latest].name if is_last else "",
        "late_ns": late if is_whole else UNKNOWN,
        "waited_ns": min(sum(lead), _MOST_NS) if is_last and is_on_gpu else UNKNOWN,
        "error_ns": UNKNOWN if UNKNOWN in errors else max(errors),
    }


def _processes_of(recording: RecordingData, count: int) -> np.ndarray:
    """Return the number of each row's process, from 1; 0 in a recording of one process."""
    found = np.zeros(count, np.int64)
    for number, process in enumerate(processes(recording), 1):
        found[process.rows["collectives"]] = number
    return found


def _processes(recording: RecordingData) -> list[_Process]:
    return [
        _Process("", "", 0),
        *(
            _Process(
                each.name,
                each.recording.manifest.boot_id or f"process {each.id}",
                each.clock_error,
            )
            for each in processes(recording)
        ),
    ]
