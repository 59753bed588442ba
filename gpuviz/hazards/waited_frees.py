"""Frees of PyTorch's allocator that waited for the streams that ``Tensor.record_stream`` named."""

import numpy as np
import pyarrow as pa

from gpuviz.analysis.touches import Touches
from gpuviz.data.codes import FRAMEWORKS
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import ACTIONS, Tables

_REQUESTED, _COMPLETED, _RECORDED = (
    ACTIONS.index(name) for name in ("free_requested", "free_completed", "record_stream")
)
_TORCH = FRAMEWORKS.index("torch")
# In ns: PyTorch requests and completes a free that waits for nothing in one call.
_AT_ONCE = 20_000


def awaited_streams(tables: Tables, used: Touches) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of a block, an index of ``used.blocks``, and a stream that its free waited for.

    PyTorch's trace has no entry for `torch.Tensor.record_stream`. A block that it names another
    stream for is free only when a later allocation finds that stream's work done. Which streams
    were named is unknown: they are taken to be those that used the block.
    """
    events, blocks = tables["memory_events"], used.blocks
    nothing = np.zeros(0, np.int64)
    freed = np.flatnonzero(blocks.free < events.num_rows)
    late = freed[_have_waited(events)[blocks.free[freed]]] if len(freed) else nothing
    stream = np.append(plain(tables["activities"]["stream"]), 0)[used.activity].astype(np.int64)
    chosen = np.isin(used.block, late) & (stream != 0)
    if not chosen.any():
        return nothing, nothing
    pairs = np.unique(np.stack([used.block[chosen].astype(np.int64), stream[chosen]]), axis=1)
    return pairs[0], pairs[1]


def _have_waited(events: pa.Table) -> np.ndarray:
    """Return whether each row requests a free of PyTorch's that completed only later."""
    action = codes(events["action"], ACTIONS)
    address, device = plain(events["address"]), plain(events["device"])
    times, stacks = plain(events["time"]).astype(np.int64), plain(events["stack"])
    waits = np.zeros(len(action), bool)
    if (action == _RECORDED).any():
        return waits  # gpuviz's allocator, which tells of each stream
    rows = np.flatnonzero(
        np.isin(action, (_REQUESTED, _COMPLETED))
        & (codes(events["framework"], FRAMEWORKS) == _TORCH)
    )
    rows = rows[np.lexsort((rows, address[rows], device[rows]))]
    first, second = rows[:-1], rows[1:]
    is_pair = (action[first] == _REQUESTED) & (action[second] == _COMPLETED)
    is_pair &= (address[first] == address[second]) & (device[first] == device[second])
    is_late = times[second] - times[first] > _AT_ONCE
    waits[first] = is_pair & (is_late | (stacks[first] != stacks[second]))
    return waits
