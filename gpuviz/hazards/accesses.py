"""The accesses of operations to blocks."""

import re

import numpy as np

from gpuviz.analysis.pools import private_pools
from gpuviz.analysis.touches import Touches
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES, Tables
from gpuviz.hazards.operation_rows import Columns

_KINDS = DICTIONARIES["activities", "kind"]
_COPIES = [_KINDS.index(name) for name in ("memcpy", "memset")]
# Copies and memsets of rows that are not contiguous.
_PLANE = re.compile(r"Memcpy(2D|3D)|MemsetD2D|Memset(2D|3D)")
# Modes of `launch_blocks` as those of the engine: unknown, read, write, read_write.
_MODES = (1, 0, 3, 3)
_WRITE = DICTIONARIES["launch_blocks", "mode"].index("write")


def are_private(tables: Tables, used: Touches) -> np.ndarray:
    """Return whether each block is in a private pool, which is reserved for its graphs."""
    pool = plain(tables["memory_events"]["pool"])[used.blocks.alloc]
    found: np.ndarray = np.isin(pool, private_pools(tables))
    return found


def are_pinned(tables: Tables, used: Touches) -> np.ndarray:
    """Return whether each block is pinned memory of the host."""
    pools, memories = tables["pools"], DICTIONARIES["pools", "memory"]
    is_pinned = codes(pools["memory"], memories) == memories.index("pinned")
    pool = plain(tables["memory_events"]["pool"])[used.blocks.alloc]
    found: np.ndarray = np.isin(pool, plain(pools["id"])[is_pinned])
    return found


def are_host_written(tables: Tables, used: Touches) -> np.ndarray:
    """Return whether the host writes to each block before anything else does.

    Who allocates pinned memory fills it, unless its first use is a copy to it.
    """
    order = np.argsort(used.call, kind="stable")
    first = first_rows(used.block[order], np.arange(len(used.blocks)))
    modes = np.append(used.mode[order], -1)[first]
    is_filled: np.ndarray = are_pinned(tables, used) & (modes != _WRITE)
    return is_filled


def accesses(
    tables: Tables,
    used: Touches,
    activity: np.ndarray,
    first: np.ndarray,
    count: np.ndarray,
) -> Columns:
    """Return the accesses of operations.

    An extent that is not known is taken to end at the next address in the block that any launch
    received, since programs pass the parts of an array to several streams.
    """
    of = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    touch = np.argsort(used.call, kind="stable")[first[of] + within]
    block = used.block[touch]
    begin = used.blocks.address[block].astype(np.int64)
    start = used.address[touch].astype(np.int64) - begin
    activities = tables["activities"]
    row = activity[of]
    # Those of the host itself are of no call.
    names = np.append(plain(tables["api_calls"]["name"]), 0)
    is_plane = are_named(tables, names, _PLANE.search)[np.minimum(used.call[touch], len(names) - 1)]
    # Older recordings have the bytes of copies only there.
    is_copy = np.isin(codes(activities["kind"], _KINDS)[row], _COPIES) & (row >= 0) & ~is_plane
    size = used.bytes[touch]
    size = np.where((size == 0) & is_copy, plain(activities["bytes"])[row], size)
    is_exact = size > 0
    return {
        "block": block.astype(np.uint32),
        "mode": np.array(_MODES, np.uint8)[used.mode[touch]],
        "start": start.astype(np.uint64),
        "stop": np.where(is_exact, start + size, _next_starts(used)[touch]).astype(np.uint64),
        "is_exact": is_exact.astype(np.uint8),
    }


def _next_starts(used: Touches) -> np.ndarray:
    """Return, for each touch, the next greater address in its block that a call received.

    Addresses are relative to the block; the last one is its end.
    """
    blocks = used.blocks
    begin = blocks.address.astype(np.int64)
    start = used.address.astype(np.int64) - begin[used.block]
    block = np.append(used.block, np.arange(len(blocks)))
    start = np.append(start, blocks.size)
    order = np.lexsort((start, block))
    block, start = block[order], start[order]
    differs = np.append((block[1:] != block[:-1]) | (start[1:] != start[:-1]), True)
    last = np.flatnonzero(differs)
    # The end of each run of equal addresses, and the address behind it.
    run = np.searchsorted(last, np.arange(len(order)))
    behind = np.append(start[1:], 0)[last[run]]
    found = np.empty(len(order), np.int64)
    found[order] = behind
    return found[: len(used.block)]
