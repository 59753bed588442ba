"""The newest rows of a table in bounded memory, and what the dropped ones left."""

from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from gpuviz import _core
from gpuviz.analysis.host_memory import as_memory_events, events_before
from gpuviz.analysis.initial_events import initial_events
from gpuviz.data.memory_columns import memory_columns


class KeptRows:
    """The batches of a table in memory, oldest first.

    Args:
        before: The number of rows of the table before them.
    """

    def __init__(self, before: int) -> None:
        self._before = before
        # Each with the number of rows up to its end, so that one step adds both.
        self._batches: deque[tuple[pa.RecordBatch, int]] = deque()

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return (batch for batch, _ in self._batches)

    @property
    def end(self) -> int:
        """The number of rows of the table, discarded ones included."""
        return self._batches[-1][1] if self._batches else self._before

    @property
    def rows(self) -> int:
        """The number of rows in memory."""
        if not self._batches:
            return 0
        oldest, end = self._batches[0]
        return self.end - end + int(oldest.num_rows)

    @property
    def oldest(self) -> tuple[pa.RecordBatch, int]:
        """The oldest batch, and the number of rows of the table up to its end."""
        return self._batches[0]

    def append(self, batch: pa.RecordBatch) -> None:
        """Add the newest batch."""
        self._batches.append((batch, self.end + batch.num_rows))

    def drop_oldest(self) -> None:
        """Remove the oldest batch."""
        self._batches.popleft()


class BeforeRows:
    """The state of memory after the discarded events of a table.

    Attributes:
        rows: Number of these events.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._state = _core.MemoryState()

    def add(self, batch: pa.RecordBatch) -> None:
        """Discard rows of the table, which follow those before."""
        self._state.apply(memory_columns(self._as_events(pa.Table.from_batches([batch]))))
        self.rows += batch.num_rows

    def _as_events(self, table: pa.Table) -> pa.Table:
        return table

    def events(self) -> pa.Table:
        """Return rows of the table that recreate the state."""
        return initial_events(self._state)


class HostBefore(BeforeRows):
    """The state of pinned memory after the discarded events of its table."""

    def _as_events(self, table: pa.Table) -> pa.Table:
        return as_memory_events(table)

    def events(self) -> pa.Table:
        """Return rows of the table that recreate the state."""
        return events_before(self._state, 0)
