"""Memory events that recreate a given state."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.initial_state import INACTIVE, PENDING_FREE
from gpuviz.data.arrays import coded
from gpuviz.data.memory_columns import NUMBER_COLUMNS
from gpuviz.data.tables import ACTIONS, DICTIONARIES, schemas

if TYPE_CHECKING:
    from gpuviz._core import MemoryState

_ACTION = {name: code for code, name in enumerate(ACTIONS)}


def initial_events(state: "MemoryState") -> pa.Table:
    """Return ``memory_events`` that recreate the segments, live blocks and limits of ``state``.

    Each event has the time, stack, stream and pool of the event that created the segment or block;
    its range is no longer known.
    """
    segments = _segment_events(state.segments())
    blocks = state.blocks()
    live = blocks["state"] != INACTIVE
    pending = blocks["state"] == PENDING_FREE
    parts = [
        _limit_events(state.memory_limits()),
        segments,
        _block_events(blocks, live, "alloc"),
        _block_events(blocks, pending, "free_requested"),
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in segments}
    order = np.argsort(columns["time"], kind="stable")
    schema = schemas()["memory_events"]
    return pa.table(
        [
            coded(columns[field.name][order], DICTIONARIES["memory_events", field.name])
            if ("memory_events", field.name) in DICTIONARIES
            else pa.array(columns[field.name][order], field.type)
            for field in schema
        ],
        schema=schema,
    )


def _segment_events(segments: dict[str, Any]) -> dict[str, Any]:
    count = len(segments["address"])
    nothing = np.zeros(count, np.int64)
    mapped, allocated = _ACTION["segment_map"], _ACTION["segment_alloc"]
    return {
        "time": segments["time"],
        "action": np.where(segments["is_expandable"], mapped, allocated).astype(np.int8),
        **{name: segments[name] for name in ("address", "size", "device", "stream", "pool")},
        "requested_size": nothing,
        "stack": segments["stack"],
        "thread": nothing,
        "range": nothing,
        "framework": nothing.astype(np.int8),
    }


def _limit_events(limits: dict[int, int]) -> dict[str, Any]:
    nothing = np.zeros(len(limits), np.int64)
    columns = dict.fromkeys((*NUMBER_COLUMNS, "range"), nothing)
    return columns | {
        "action": np.full(len(limits), _ACTION["memory_limit"], np.int8),
        "device": np.array(list(limits), np.int16),
        "address": nothing.astype(np.uint64),
        "size": np.array(list(limits.values()), np.int64),
        "framework": nothing.astype(np.int8),
    }


def _block_events(blocks: dict[str, Any], chosen: Any, action: str) -> dict[str, Any]:
    columns = {name: blocks[name][chosen] for name in NUMBER_COLUMNS}
    count = len(columns["time"])
    return columns | {
        "action": np.full(count, _ACTION[action], np.int8),
        "range": np.zeros(count, np.int64),
        "framework": blocks["framework"][chosen],
    }
