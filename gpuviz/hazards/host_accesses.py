"""The host's own accesses to pinned memory, as operations among those of streams.

The recorder finds them by their effect. What a copy of the GPU or a kernel may have written to the
memory meanwhile is no access of the host.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpuviz.analysis.touches import Touches
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import DICTIONARIES, Tables
from gpuviz.hazards.host_functions import host_functions
from gpuviz.hazards.queries import CLOCKS_AGREE

TABLE = "host_accesses"
_MODES = DICTIONARIES["launch_blocks", "mode"]
_READ = _MODES.index("read")
_LATEST = np.iinfo(np.int64).max


def with_host_accesses(tables: Tables, used: Touches) -> tuple[Touches, np.ndarray]:
    """Return which work used which blocks, with what the host accessed itself.

    Also returned are the rows of ``host_accesses`` that count; the call of the touch of each is
    its place among them behind all of ``api_calls``.
    """
    table, calls = tables[TABLE], tables["api_calls"]
    if not table.num_rows:
        return used, np.zeros(0, np.int64)
    call = first_rows(plain(calls["correlation"]), plain(table["correlation"]))
    touch = _touches_of_copies(used, call, plain(table["address"]))
    rows = np.flatnonzero((touch >= 0) & ~_are_known_exactly(table))
    rows = rows[~_may_be_of_gpu(tables, used, rows, touch[rows])]
    rows = rows[~_may_be_of_host_functions(tables, rows)]
    touch = touch[rows]

    def joined(own: np.ndarray, further: np.ndarray) -> np.ndarray:
        both: np.ndarray = np.concatenate([own, further.astype(own.dtype)])
        return both

    return replace(
        used,
        block=joined(used.block, used.block[touch]),
        call=joined(used.call, calls.num_rows + np.arange(len(rows))),
        address=joined(used.address, used.address[touch]),
        mode=joined(used.mode, codes(table["mode"], DICTIONARIES[TABLE, "mode"])[rows]),
        bytes=joined(used.bytes, plain(table["bytes"])[rows]),
        activity=joined(used.activity, np.full(len(rows), -1)),
    ), rows


def _are_known_exactly(table: pa.Table) -> np.ndarray:
    """Return whether another row has the line of what changed the memory of a copy."""
    correlation, is_exact = plain(table["correlation"]), plain(table["exact"]) != 0
    modes = codes(table["mode"], DICTIONARIES[TABLE, "mode"])
    found: np.ndarray = ~is_exact & np.isin(correlation, correlation[is_exact & (modes != _READ)])
    return found


def _may_be_of_host_functions(tables: Tables, rows: np.ndarray) -> np.ndarray:
    """Return whether a function that a stream calls on the host may have made each access.

    Its stream orders it. CUDA calls such functions on threads that may not use CUDA.
    """
    table, calls = tables[TABLE], tables["api_calls"]
    begins = plain(calls["time"])[host_functions(tables)]
    first = begins.min(initial=_LATEST)
    is_own = (plain(table["exact"]) != 0) & np.isin(plain(table["thread"]), plain(calls["thread"]))
    found: np.ndarray = ((plain(table["time"]) > first) & ~is_own)[rows]
    return found


def _touches_of_copies(used: Touches, call: np.ndarray, address: np.ndarray) -> np.ndarray:
    """Return the touch of each copy at an address of the host; -1 if there is none."""
    places = np.flatnonzero(np.isin(used.call, call[call >= 0]))
    known = dict(
        zip(
            zip(used.call[places].tolist(), used.address[places].tolist(), strict=True),
            places.tolist(),
            strict=True,
        )
    )
    keys = zip(call.tolist(), address.tolist(), strict=True)
    return np.array([known.get(key, -1) for key in keys], np.int64)


def _may_be_of_gpu(
    tables: Tables, used: Touches, rows: np.ndarray, touch: np.ndarray
) -> np.ndarray:
    """Return whether work of the GPU may have changed what the host is taken to have changed.

    That is work that was enqueued before the change was found, and that had not ended when the
    copy was enqueued; and whatever a graph does, which is launched at any time. Only the memory
    that copies read is compared; that of other copies was watched.
    """
    table, times = tables[TABLE], plain(tables["api_calls"]["time"])
    end, is_exact = plain(table["time"])[rows], plain(table["exact"])[rows] != 0
    begin = times[used.call[touch]]
    others = np.flatnonzero((used.mode != _READ) & np.isin(used.block, used.block[touch]))
    ends = np.append(plain(tables["activities"]["end"]), _LATEST)[used.activity[others]]
    blocks, enqueued = used.block[others], times[used.call[others]]
    is_graph = used.activity[others] < 0
    changed = [
        bool(
            np.any(
                (blocks == block) & (enqueued <= last) & (is_graph | (ends > first - CLOCKS_AGREE))
            )
        )
        for block, first, last in zip(
            used.block[touch].tolist(), begin.tolist(), end.tolist(), strict=True
        )
    ]
    is_compared = ~is_exact & (used.mode[touch] == _READ)
    found: np.ndarray = np.array(changed, bool) & is_compared
    return found
