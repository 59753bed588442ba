"""The memory events of a recording as columns for the native core."""

import pyarrow as pa

from gpuviz._core import MemoryColumns
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import ACTIONS, FRAMEWORKS

# Of `memory_events`; what the state of memory follows from, but for ``action`` and ``framework``.
NUMBER_COLUMNS = (
    "time",
    "address",
    "size",
    "requested_size",
    "device",
    "stream",
    "pool",
    "stack",
    "thread",
)


def memory_columns(events: pa.Table) -> MemoryColumns:
    """Return the columns of ``memory_events`` for the native core; one chunk is not copied."""
    numbers = {name: plain(events[name]) for name in NUMBER_COLUMNS}
    return MemoryColumns(
        action=codes(events["action"], ACTIONS),
        framework=codes(events["framework"], FRAMEWORKS),
        **numbers,
    )
