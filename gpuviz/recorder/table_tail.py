"""The newest rows of a growing table."""

from collections import deque
from collections.abc import Iterable

import pyarrow as pa

from gpuviz.data.arrays import empty

# Before every time of a recording.
FIRST_NS = -(2**62)


class TableTail:
    """The newest batches of a table.

    Attributes:
        first: Row number of the first row.
        known: Number of rows at the last `trim`.
        ended_ns: Latest end of the rows before these.
    """

    def __init__(self, table: pa.Table) -> None:
        self._batches = deque(table.to_batches())
        self._rows = table.num_rows
        self.first = 0
        self.known = 0
        self.ended_ns = FIRST_NS

    def append(self, batch: pa.RecordBatch) -> None:
        """Add the newest batch."""
        self._batches.append(batch)
        self._rows += batch.num_rows

    def trim(self, most_rows: int) -> None:
        """Drop the oldest rows but for a number of them."""
        while self._rows > most_rows:
            oldest = self._batches.popleft()
            dropped = min(oldest.num_rows, self._rows - most_rows)
            if dropped < oldest.num_rows:
                self._batches.appendleft(oldest.slice(dropped))
            self._rows -= dropped
            self.first += dropped
            ends = oldest.slice(0, dropped)["end"].to_numpy()
            self.ended_ns = max(self.ended_ns, int(ends.max(initial=FIRST_NS)))
        self.known = self._rows

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return the rows as a table."""
        table = joined(self._batches, schema)
        self._batches = deque(table.to_batches())
        return table


def joined(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return batches, whose dictionaries may differ, as a table in one piece."""
    parts = [batch if batch.schema.equals(schema) else batch.cast(schema) for batch in batches]
    if not parts:
        return empty(schema)
    table = pa.Table.from_batches(parts, schema)
    return table if len(parts) == 1 else table.unify_dictionaries().combine_chunks()
