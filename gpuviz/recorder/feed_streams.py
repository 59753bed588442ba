"""Rows of tables as Arrow IPC streams, for listeners that follow a recording."""

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

# Approximate size of a part of a snapshot.
PART_BYTES = 8 << 20
_END = b"\xff\xff\xff\xff\0\0\0\0"


class _Beginning(NamedTuple):
    """The messages before the rows of a stream: the schema, and dictionaries of these words."""

    schema: "pa.Schema"
    words: "tuple[pa.Array, ...]"
    messages: bytes


# By table. Pyarrow gives up the GIL in most calls, and a program that computes in Python lets a
# thread wait 5 ms to get it back: what does not change is made once.
_beginnings: dict[str, _Beginning] = {}


def streams(batches: "Sequence[tuple[str, pa.RecordBatch]]") -> "Iterator[tuple[str, bytes]]":
    """Yield the name and rows of each table that occurs, as one Arrow IPC stream."""
    by_table: dict[str, list[pa.RecordBatch]] = {}
    for table, batch in batches:
        by_table.setdefault(table, []).append(batch)
    for table, parts in by_table.items():
        yield table, _stream(table, parts)


def derived_stream(name: str, table: "pa.Table") -> bytes:
    """Return all rows of a derived table as an Arrow IPC stream."""
    import pyarrow as pa

    return _stream(name, table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)])


def split(
    tables: "Mapping[str, pa.Table]",
) -> "Iterator[tuple[tuple[str, bytes], ...]]":
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


def _stream(table: str, batches: "list[pa.RecordBatch]") -> bytes:
    if len(batches) > 1:
        batches = _joined(batches)
    (batch,) = batches
    words = tuple(column.dictionary for column in batch.columns if hasattr(column, "dictionary"))
    beginning = _beginnings.get(table)
    if beginning is None or not _holds(beginning, batch.schema, words):
        beginning = _beginnings[table] = _Beginning(batch.schema, words, _before_rows(batch))
    rows: bytes = batch.serialize().to_pybytes()
    return beginning.messages + rows + _END


def _joined(batches: "list[pa.RecordBatch]") -> "list[pa.RecordBatch]":
    """Return one batch; dictionaries may differ between batches."""
    import pyarrow as pa

    whole = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return whole.to_batches() or batches[:1]


def _holds(beginning: _Beginning, schema: "pa.Schema", words: "tuple[pa.Array, ...]") -> bool:
    """Return whether a batch has the same columns, and its dictionaries the same memory."""
    return beginning.schema.equals(schema) and all(
        known is word or _place(known) == _place(word)
        for known, word in zip(beginning.words, words, strict=True)
    )


def _place(words: "pa.Array") -> tuple[int, ...]:
    contents = (buffer and buffer.address for buffer in words.buffers())
    return (words.offset, len(words), *(address or 0 for address in contents))


def _before_rows(batch: "pa.RecordBatch") -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_options()) as writer:
        writer.write_batch(batch)
    whole = bytes(sink.getvalue())
    return whole[: len(whole) - len(batch.serialize()) - len(_END)]


@cache
def _options() -> "pa.ipc.IpcWriteOptions":
    import pyarrow as pa

    # Cached, because each call reads environment variables.
    return pa.ipc.IpcWriteOptions()
