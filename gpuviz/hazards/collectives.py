"""The buffers of collectives, as what NCCL's kernels access.

The arguments of these kernels do not say what they do with which buffer; the rows of
``collectives`` do. A kernel whose rows are not known for certain accesses nothing here.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpuviz.analysis.collective_kernels import collective_kernels
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.lifetimes import Lifetimes
from gpuviz.analysis.touches import Touches, alive
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.tables import DICTIONARIES, Tables

_FUNCTIONS = DICTIONARIES["collectives", "function"]
_MODES = DICTIONARIES["launch_blocks", "mode"]
# The others read what every rank gives, and write what every rank gets.
_FROM_ROOT = [_FUNCTIONS.index(name) for name in ("broadcast", "scatter")]
_TO_ROOT = [_FUNCTIONS.index(name) for name in ("reduce", "gather")]
_ALL_GATHER, _UNKNOWN = _FUNCTIONS.index("all_gather"), _FUNCTIONS.index("unknown")
# How many of the blocks that begin before an address are looked at for the one around it.
_MOST_BEFORE = 64


def with_collectives(tables: Tables, used: Touches) -> tuple[Touches, np.ndarray]:
    """Return which work used which blocks, with the buffers of collectives.

    Also returned are the rows of ``activities`` that are kernels with such buffers.
    """
    rows, kernel = tables["collectives"], collective_kernels(tables)
    if not np.any(kernel >= 0):
        return used, np.zeros(0, np.int64)
    call_of = calls_of(tables, plain(tables["activities"]["correlation"])[kernel])
    times, size = plain(tables["api_calls"]["time"]), plain(rows["bytes"])
    sources, destinations = (plain(rows[name]) for name in ("source", "destination"))
    read = np.flatnonzero((kernel >= 0) & _are_read(rows))
    written = np.flatnonzero((kernel >= 0) & _are_written(rows))
    row = np.concatenate([read, written])
    address = np.concatenate([sources[read], destinations[written]])
    mode = np.repeat(
        np.array([_MODES.index("read"), _MODES.index("write")], used.mode.dtype),
        [len(read), len(written)],
    )
    block = _around(used.blocks, address, times[call_of[row]])
    end = (used.blocks.address[block] + used.blocks.size[block]).astype(np.int64)
    chosen = np.flatnonzero((block >= 0) & (address.astype(np.int64) + size[row] <= end))
    row = row[chosen]
    kept = np.flatnonzero(~np.isin(used.call, call_of[row]))
    call = np.concatenate([used.call[kept], call_of[row]])
    order = np.argsort(call, kind="stable")

    def joined(own: np.ndarray, further: np.ndarray) -> np.ndarray:
        both: np.ndarray = np.concatenate([own[kept], further])[order]
        return both

    return replace(
        used,
        block=joined(used.block, block[chosen]),
        call=call[order],
        address=joined(used.address, address[chosen]),
        mode=joined(used.mode, mode[chosen]),
        bytes=joined(used.bytes, size[row]),
        activity=joined(used.activity, kernel[row]),
    ), distinct(kernel[row])


def _are_read(rows: pa.Table) -> np.ndarray:
    """Return whether a rank gives something to each collective."""
    function = codes(rows["function"], _FUNCTIONS)
    is_root = plain(rows["rank"]) == plain(rows["peer"])
    found: np.ndarray = ~np.isin(function, _FROM_ROOT) | is_root
    found &= _have_size(rows, function) & (plain(rows["source"]) != 0)
    return found


def _are_written(rows: pa.Table) -> np.ndarray:
    """Return whether a rank gets something from each collective."""
    function = codes(rows["function"], _FUNCTIONS)
    is_root = plain(rows["rank"]) == plain(rows["peer"])
    found: np.ndarray = ~np.isin(function, _TO_ROOT) | is_root
    # What a rank gives stays where it is, if it is in its place already.
    in_place = plain(rows["source"]) == plain(rows["destination"])
    found &= ~(in_place & np.isin(function, [_ALL_GATHER, *_FROM_ROOT, *_TO_ROOT[1:]]))
    found &= _have_size(rows, function) & (plain(rows["destination"]) != 0)
    return found


def _have_size(rows: pa.Table, function: np.ndarray) -> np.ndarray:
    found: np.ndarray = (plain(rows["bytes"]) > 0) & (function != _UNKNOWN)
    return found


def _around(blocks: Lifetimes, address: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Return the block around each address at its time; -1 if it is not found."""
    begins = distinct(blocks.address)
    place = np.searchsorted(begins, address, side="right") - 1
    found = np.full(len(address), -1)
    for before in range(_MOST_BEFORE):
        open_ = np.flatnonzero((found < 0) & (place >= before))
        if not len(open_):
            break
        found[open_] = alive(blocks, begins[place[open_] - before], time[open_])
    return found
