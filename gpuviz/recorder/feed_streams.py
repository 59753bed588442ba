"""Rows of tables as Arrow IPC streams, for listeners that follow a recording."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from gpuviz.data.tables import Tables
from gpuviz.formats.stream_messages import END, Beginning, beginning_of, rows_of

# Approximate size of a part of a snapshot.
PART_BYTES = 8 << 20

# By table. Pyarrow gives up the GIL in most calls, and a program that computes in Python lets a
# thread wait 5 ms to get it back: what does not change is made once.
_beginnings: dict[str, Beginning] = {}


def streams(batches: Sequence[tuple[str, pa.RecordBatch]]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and rows of each table that occurs, as one Arrow IPC stream."""
    by_table: dict[str, list[pa.RecordBatch]] = {}
    for table, batch in batches:
        by_table.setdefault(table, []).append(batch)
    for table, parts in by_table.items():
        yield table, _stream(table, parts)


def derived_stream(name: str, table: pa.Table) -> bytes:
    """Return all rows of a derived table as an Arrow IPC stream."""
    return _stream(name, table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)])


def split(
    tables: Tables,
) -> Iterator[tuple[tuple[str, bytes], ...]]:
    """Yield all rows of all tables in parts of bounded size; at least one part."""
    part: list[tuple[str, bytes]] = []
    size = 0
    for name, table in tables.items():
        if table.num_rows == 0:
            continue
        rows = max(1, int(table.num_rows * PART_BYTES / max(table.nbytes, 1)))
        for batch in table.combine_chunks().to_batches(max_chunksize=rows):
            if size >= PART_BYTES:
                yield tuple(part)
                part, size = [], 0
            part.append((name, _stream(name, [batch])))
            size += len(part[-1][1])
    yield tuple(part)


def _stream(table: str, batches: list[pa.RecordBatch]) -> bytes:
    if len(batches) > 1:
        batches = _joined(batches)
    (batch,) = batches
    beginning = _beginnings.get(table)
    if beginning is None or not beginning.holds(batch):
        beginning = _beginnings[table] = beginning_of(batch)
    return beginning.messages + rows_of(batch) + END


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return one batch; dictionaries may differ between batches."""
    whole = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return whole.to_batches() or batches[:1]
