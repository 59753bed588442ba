"""The messages of an Arrow IPC stream, made one batch at a time without a writer's state."""

from functools import cache
from typing import NamedTuple

import pyarrow as pa

END = b"\xff\xff\xff\xff\0\0\0\0"


class Beginning(NamedTuple):
    """The messages before rows: the schema, then dictionaries with these words.

    Attributes:
        schema: The columns.
        words: The dictionaries.
        messages: All messages, as bytes.
        schema_bytes: How many of these bytes are the schema.
    """

    schema: pa.Schema
    words: tuple[pa.Array, ...]
    messages: bytes
    schema_bytes: int

    @property
    def dictionaries(self) -> bytes:
        """The messages that replace the dictionaries of a stream with the same schema."""
        return self.messages[self.schema_bytes :]

    def holds(self, batch: pa.RecordBatch) -> bool:
        """Return whether a batch has the same columns, and its dictionaries the same memory."""
        return self.schema.equals(batch.schema) and all(
            known is word or _place(known) == _place(word)
            for known, word in zip(self.words, _words(batch), strict=True)
        )


def beginning_of(batch: pa.RecordBatch) -> Beginning:
    """Return the messages that a stream needs before the rows of a batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_options()) as writer:
        writer.write_batch(batch)
    whole = bytes(sink.getvalue())
    messages = whole[: len(whole) - len(batch.serialize()) - len(END)]
    return Beginning(batch.schema, _words(batch), messages, len(batch.schema.serialize()))


def rows_of(batch: pa.RecordBatch) -> bytes:
    """Return the message with the rows of a batch."""
    rows: bytes = batch.serialize().to_pybytes()
    return rows


def _words(batch: pa.RecordBatch) -> tuple[pa.Array, ...]:
    kinds = batch.schema.types
    places = (number for number, kind in enumerate(kinds) if pa.types.is_dictionary(kind))
    return tuple(batch.column(number).dictionary for number in places)


def _place(words: pa.Array) -> tuple[int, ...]:
    contents = (buffer and buffer.address for buffer in words.buffers())
    return (words.offset, len(words), *(address or 0 for address in contents))


@cache
def _options() -> pa.ipc.IpcWriteOptions:
    # Cached, because each call reads environment variables.
    return pa.ipc.IpcWriteOptions()
