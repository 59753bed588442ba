"""Arrow IPC streams of tables, checked before anything in them is expanded.

The size of a batch follows from its metadata: the lengths of its buffers, which may overlap, and if
they are compressed, the lengths that they declare to have when they are not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from struct import Struct
from struct import error as struct_error
from typing import Any

import pyarrow as pa

from gpuviz.data import conclusions, derived, tables
from gpuviz.formats.load_limit import LoadLimit

TABLE_SUFFIX = ".arrow"

_INT32, _INT64, _UINT16, _UINT32 = Struct("<i"), Struct("<q"), Struct("<H"), Struct("<I")
_CONTINUATION = 0xFFFFFFFF
# Fields of Message, RecordBatch and DictionaryBatch in Arrow's format/Message.fbs.
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_BUFFERS, _COMPRESSION = 2, 3
_DICTIONARY_DATA = 1


@dataclass(frozen=True, slots=True)
class Extent:
    """The complete messages at the start of a stream.

    Attributes:
        end: Bytes of these messages.
        nbytes: Bytes of all their buffers when they are not compressed.
    """

    end: int
    nbytes: int


def extent(content: bytes) -> Extent:
    """Return what the complete messages of a stream take; nothing is expanded."""
    end = nbytes = 0
    try:
        for end, size in _messages(memoryview(content)):  # noqa: B007 - used after the last one
            nbytes += size
    except (struct_error, ValueError, OverflowError):
        pass
    return Extent(end, nbytes)


def _messages(content: memoryview) -> Iterator[tuple[int, int]]:
    """Yield for each message where it ends and the bytes of its buffers."""
    position = 0
    while position < len(content):
        start = position + 4
        length = _UINT32.unpack_from(content, position)[0]
        if length == _CONTINUATION:
            length = _UINT32.unpack_from(content, start)[0]
            start += 4
        body = start + length
        if length == 0:
            yield body, 0
            return
        if body > len(content):
            raise ValueError("truncated")
        message = _FlatTable.root(content[start:body])
        end = body + message.int64(_BODY_LENGTH)
        if not body <= end <= len(content):
            raise ValueError("truncated")
        yield end, _buffer_bytes(message, content[body:end])
        position = end


def _buffer_bytes(message: "_FlatTable", body: memoryview) -> int:
    kind = message.uint8(_HEADER_TYPE)
    if kind not in {_DICTIONARY_BATCH, _RECORD_BATCH}:
        return 0
    batch = message.table(_HEADER)
    if batch is not None and kind == _DICTIONARY_BATCH:
        batch = batch.table(_DICTIONARY_DATA)
    if batch is None:
        raise ValueError("no batch")
    buffers = batch.pairs(_BUFFERS)
    if batch.table(_COMPRESSION) is None:
        return sum(max(length, 0) for _, length in buffers)
    return sum(_uncompressed(body, offset, length) for offset, length in buffers)


def _uncompressed(body: memoryview, offset: int, length: int) -> int:
    if length <= 0:
        return 0
    declared: int = _INT64.unpack_from(body, offset)[0]
    return max(declared, length)


@dataclass(frozen=True, slots=True)
class _FlatTable:
    """A table of a FlatBuffer; a position outside the buffer is a struct.error."""

    buffer: memoryview
    position: int

    @classmethod
    def root(cls, buffer: memoryview) -> "_FlatTable":
        return cls(buffer, _UINT32.unpack_from(buffer, 0)[0])

    def uint8(self, field: int) -> int:
        at = self._field(field)
        return 0 if at is None else self.buffer[at : at + 1].tolist()[0]

    def int64(self, field: int) -> int:
        at = self._field(field)
        return 0 if at is None else _INT64.unpack_from(self.buffer, at)[0]

    def table(self, field: int) -> "_FlatTable | None":
        at = self._field(field)
        if at is None:
            return None
        return _FlatTable(self.buffer, at + _UINT32.unpack_from(self.buffer, at)[0])

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Yield the elements of a vector of two integers each."""
        at = self._field(field)
        if at is None:
            return iter(())
        at += _UINT32.unpack_from(self.buffer, at)[0]
        count = _UINT32.unpack_from(self.buffer, at)[0]
        end = at + 4 + 16 * count
        if end > len(self.buffer):
            raise ValueError("truncated")
        return Struct("<qq").iter_unpack(self.buffer[at + 4 : end])

    def _field(self, field: int) -> int | None:
        if self.position < 0:
            raise ValueError("negative position")
        vtable = self.position - _INT32.unpack_from(self.buffer, self.position)[0]
        if vtable < 0:
            raise ValueError("negative position")
        if 4 + 2 * field + 2 > _UINT16.unpack_from(self.buffer, vtable)[0]:
            return None
        offset: int = _UINT16.unpack_from(self.buffer, vtable + 4 + 2 * field)[0]
        return self.position + offset if offset else None


def read_table(content: bytes, name: str, limit: LoadLimit) -> pa.Table:
    """Return the table in a complete stream, valid and as it was written.

    Args:
        content: The stream, whose own size counts already.
        name: The table, with its folder.
        limit: Counts what the table takes beyond the size of the stream.

    Raises:
        FormatError: The table takes more than the limit.
        ValueError: The bytes are not such a stream, or its values are out of range.
    """
    known = known_schema(name)
    if known is not None:
        without_rows, table = _empty(name)
        if content == without_rows:
            return table
    member = name + TABLE_SUFFIX
    messages = _within(content, member, limit)
    with pa.ipc.open_stream(pa.py_buffer(messages)) as reader:
        schema = reader.schema
        if known is not None and schema.equals(known):
            table = reader.read_all()
            table.validate(full=True)
            return table
    with pa.ipc.open_stream(pa.py_buffer(messages), options=_plain_only(schema)) as reader:
        table = reader.read_all()
    table.validate(full=True)
    if known is not None:
        limit.take(member, decoded_bytes(table, known))
    return table


def checked(
    content: bytes, member: str, limit: LoadLimit
) -> tuple[memoryview, pa.ipc.IpcReadOptions]:
    """Return the complete messages of a stream whose size has been checked, and how to read them.

    Args:
        content: The stream, whose own size counts already.
        member: Its name, for errors.
        limit: Counts what the stream takes beyond its own size.

    Raises:
        FormatError: The stream takes more than the limit.
        ValueError: Its start is damaged, or it has no column that can be read.
    """
    messages = _within(content, member, limit)
    with pa.ipc.open_stream(pa.py_buffer(messages)) as reader:
        return messages, _plain_only(reader.schema)


def _within(content: bytes, member: str, limit: LoadLimit) -> memoryview:
    whole = extent(content)
    limit.take(member, max(0, whole.nbytes - len(content)))
    return memoryview(content)[: whole.end]


def _plain_only(schema: pa.Schema) -> pa.ipc.IpcReadOptions:
    plain = plain_columns(schema)
    included = None if len(plain) == len(schema) else plain
    return pa.ipc.IpcReadOptions(included_fields=included)


@cache
def _empty(name: str) -> tuple[bytes, pa.Table]:
    """Return the stream of a known table without rows, and the table."""
    schema, sink = known_schema(name), BytesIO()
    assert schema is not None  # noqa: S101
    with pa.ipc.new_stream(sink, schema):
        pass
    content = sink.getvalue()
    with pa.ipc.open_stream(content) as reader:
        return content, reader.read_all()


def known_schema(table: str) -> pa.Schema | None:
    """Return the schema of a table, of a derived one too; None if gpuviz does not know it."""
    folder, _, name = table.rpartition("/")
    if folder == "derived":
        return derived.schemas().get(name) or conclusions.schemas().get(name)
    return tables.schemas().get(name) if folder == "" else None


def plain_columns(schema: pa.Schema) -> list[int]:
    """Return the positions of the columns in which each value takes space.

    Columns of other types, such as null and run-end encoded ones, can have any number of rows in a
    few bytes, and no table of gpuviz has them.

    Raises:
        ValueError: There are none.
    """
    plain = [position for position, field in enumerate(schema) if _is_plain(field.type)]
    if not plain:
        raise ValueError("no columns of known types")
    return plain


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_plain(kind.value_type)
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_plain(field.type) for field in kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(pa.types.is_primitive(kind) or is_text or is_bytes)


def decoded_bytes(table: pa.Table, schema: pa.Schema) -> int:
    """Return the bytes of the texts that `Recording` will copy out of dictionaries."""
    return sum(
        _text_bytes(chunk)
        for field in schema
        for position in table.schema.get_all_field_indices(field.name)
        for chunk in table.column(position).chunks
        if pa.types.is_dictionary(chunk.type) and chunk.type != field.type
    )


def _text_bytes(array: pa.DictionaryArray) -> int:
    import pyarrow.compute as pc

    words: Any = array.dictionary
    if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type)):
        return 0
    lengths = pc.cast(pc.binary_length(words), pa.int64())
    return int(pc.sum(pc.take(lengths, array.indices)).as_py() or 0)
