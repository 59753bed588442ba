"""The private pools of captured graphs."""

from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.lifetimes import lifetimes
from gpuviz.analysis.pools import private_pools
from gpuviz.analysis.touches import alive
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS, DICTIONARIES

_LAUNCH = DICTIONARIES["graph_calls", "kind"].index("launch")
# What an action adds to the reserved and to the allocated bytes, in units of its size.
_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_ALLOCATED = {"alloc": 1, "free_requested": -1}


def graph_pools(recording: RecordingData) -> pa.Table:
    """Return the private pools whose memory captured graphs use, such as those of `gpuviz.graph`.

    One row for each, by device and number. Columns: ``device``, ``pool`` (the n of its id (0, n)),
    ``reserved`` and ``allocated`` (bytes at the end), ``reserved_peak`` and ``allocated_peak`` (the
    maxima), ``graphs`` (how many captures use it) and ``replays`` (launches of their graphs; null
    if nodes of a launched graph are unknown). What is reserved and not allocated is idle, or has
    temporaries of a replay. Graphs that were captured before the recording, or without launch
    blocks, are unknown.
    """
    captures = _captures_by_pool(recording)
    launches = _launches(recording)
    rows: list[dict[str, Any]] = []
    for (device, pool), numbers in sorted(captures.items()):
        replays = None if launches is None else sum(launches.get(each, 0) for each in numbers)
        levels = _levels(recording, device, pool)
        rows.append(
            {
                "device": device,
                "pool": pool,
                **levels,
                "graphs": len(numbers),
                "replays": replays,
            }
        )
    return pa.Table.from_pylist(rows, _schema())


def _schema() -> pa.Schema:
    names = ("reserved", "reserved_peak", "allocated", "allocated_peak", "graphs", "replays")
    return pa.schema(
        [("device", pa.int16()), ("pool", pa.uint32()), *((name, pa.int64()) for name in names)]
    )


def _captures_by_pool(recording: RecordingData) -> dict[tuple[int, int], set[int]]:
    """Return the captures that use each private pool, by device and number of the pool."""
    tables = recording.tables
    private = private_pools(tables)
    if not (len(private) and tables["graph_calls"].num_rows and tables["launch_blocks"].num_rows):
        return {}
    calls = tables["graph_calls"]
    is_node = codes(calls["kind"], DICTIONARIES["graph_calls", "kind"]) != _LAUNCH
    node = first_rows(plain(calls["correlation"]), plain(tables["launch_blocks"]["correlation"]))
    rows = np.flatnonzero((node >= 0) & is_node[node])
    correlation = plain(tables["launch_blocks"]["correlation"])[rows]
    call = first_rows(plain(tables["api_calls"]["correlation"]), correlation)
    rows, call = rows[call >= 0], call[call >= 0]
    blocks = lifetimes(recording)
    address = plain(tables["launch_blocks"]["block"])[rows]
    block = alive(blocks, address, plain(tables["api_calls"]["time"])[call])
    rows, block = rows[block >= 0], block[block >= 0]
    pool = plain(tables["memory_events"]["pool"])[blocks.alloc[block]]
    is_private = np.isin(pool, private)
    found: dict[tuple[int, int], set[int]] = {}
    for device, number, capture in zip(
        blocks.device[block][is_private].tolist(),
        (pool[is_private] // 2).tolist(),
        plain(calls["capture"])[node[rows[is_private]]].tolist(),
        strict=True,
    ):
        found.setdefault((device, number), set()).add(capture)
    return found


def _launches(recording: RecordingData) -> dict[int, int] | None:
    """Return the launches of each capture's graphs; None if some are of unknown captures."""
    calls = recording.tables["graph_calls"]
    is_launch = codes(calls["kind"], DICTIONARIES["graph_calls", "kind"]) == _LAUNCH
    captures, counts = np.unique(plain(calls["capture"])[is_launch], return_counts=True)
    launches: dict[int, int] = dict(zip(captures.tolist(), counts.tolist(), strict=True))
    return None if 0 in launches else launches


def _levels(recording: RecordingData, device: int, pool: int) -> dict[str, int]:
    events = recording.tables["memory_events"]
    is_here = (plain(events["device"]) == device) & (plain(events["pool"]) // 2 == pool)
    actions = codes(events["action"], ACTIONS)[is_here]
    sizes = plain(events["size"])[is_here]
    found = {}
    for name, signs in (("reserved", _RESERVED), ("allocated", _ALLOCATED)):
        sign: np.ndarray = np.zeros(len(ACTIONS), np.int64)
        for action, value in signs.items():
            sign[ACTIONS.index(action)] = value
        level = np.cumsum(sign[actions] * sizes)
        found[name] = int(level[-1]) if len(level) else 0
        found[f"{name}_peak"] = int(level.max(initial=0))
    return found
