"""Parquet files of tables, checked before anything in them is expanded.

A file's metadata may declare anything, so the sizes are those in the headers of the pages that will
be read: bytes after decompression, and the number of values, which may be encoded in no space.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import error as struct_error
from typing import Any

import pyarrow as pa

from gpuviz.formats.arrow_stream import plain_columns
from gpuviz.formats.load_limit import LoadLimit

# Of a value in Arrow: 8 bytes, 2 for each of its levels, a bit for whether it is there.
_VALUE_BYTES = 13
_MAX_HEADER = 1 << 16
_MAX_DEPTH = 8
# Fields of PageHeader in parquet.thrift.
_UNCOMPRESSED, _COMPRESSED, _DATA, _DICTIONARY, _DATA_V2 = 2, 3, 5, 7, 8
_NUM_VALUES = 1


def read_checked(content: bytes, member: str, limit: LoadLimit) -> pa.Table:
    """Return the table in a Parquet file; texts may be in dictionaries.

    Args:
        content: The file, whose own size counts already.
        member: Its name, for errors.
        limit: Counts what its values take.

    Raises:
        FormatError: They take more than the limit.
        ValueError: The file is damaged, or it has no column that can be read.
    """
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(pa.BufferReader(content))
    schema = metadata.schema.to_arrow_schema()
    names = [schema.field(position).name for position in plain_columns(schema)]
    # Dots also separate the parts of nested columns.
    names = [name for name in names if "." not in name]
    for chunk in _column_chunks(metadata, set(names)):
        limit.take(member, _page_bytes(memoryview(content), chunk))
    # A text may repeat a million times at no cost in the file.
    texts = [name for name in names if _is_text(schema.field(name).type)]
    with pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts) as file:
        return file.read(columns=names)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Where the pages of a part of a column are; they end once all values have been read."""

    start: int
    end: int
    values: int


def _column_chunks(metadata: Any, names: set[str]) -> Iterator[_Chunk]:
    """Yield the parts of the columns with these names."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for position in range(row_group.num_columns):
            column = row_group.column(position)
            if column.path_in_schema.partition(".")[0] in names:
                start = column.data_page_offset
                if column.has_dictionary_page and 0 < column.dictionary_page_offset < start:
                    start = column.dictionary_page_offset
                yield _Chunk(start, start + column.total_compressed_size, column.num_values)


def _page_bytes(content: memoryview, chunk: _Chunk) -> int:
    """Return the bytes that the pages of a part of a column take.

    Raises:
        ValueError: They are damaged.
    """
    if not 0 <= chunk.start <= chunk.end <= len(content):
        raise ValueError("a column is outside the file")
    total = seen = 0
    start = chunk.start
    while start < chunk.end and seen < chunk.values:
        header = _Header(content[start : min(start + _MAX_HEADER, chunk.end)])
        fields = header.struct()
        data = max(fields.get((kind, _NUM_VALUES), 0) for kind in (_DATA, _DATA_V2))
        values = max(data, fields.get((_DICTIONARY, _NUM_VALUES), 0))
        compressed = fields.get((_COMPRESSED,), -1)
        uncompressed = fields.get((_UNCOMPRESSED,), -1)
        if min(values, compressed, uncompressed) < 0:
            raise ValueError("a page has no size")
        total += uncompressed + values * _VALUE_BYTES
        seen += data
        start += header.position + compressed
    return total


class _Header:
    """A struct in Thrift's compact protocol, at the start of some bytes."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self.position = 0

    def struct(self) -> dict[tuple[int, ...], int]:
        """Return the integers in the struct, and in structs within, by their path of field ids.

        Raises:
            ValueError: The bytes are damaged.
        """
        fields: dict[tuple[int, ...], int] = {}
        try:
            self._struct((), fields)
        except (IndexError, struct_error):
            raise ValueError("a page header is damaged") from None
        return fields

    def _struct(self, path: tuple[int, ...], fields: dict[tuple[int, ...], int]) -> None:
        if len(path) > _MAX_DEPTH:
            raise ValueError("a page header is nested too deep")
        field = 0
        while kind := self._byte():
            field = field + (kind >> 4) if kind >> 4 else self._integer()
            self._value(kind & 15, (*path, field), fields)

    def _value(self, kind: int, path: tuple[int, ...], fields: dict[tuple[int, ...], int]) -> None:
        if kind in {1, 2}:
            return
        if kind in {4, 5, 6}:
            fields[path] = self._integer()
        elif kind == 12:  # noqa: PLR2004 - a struct
            self._struct(path, fields)
        else:
            skip = _SKIPPED.get(kind)
            if skip is None:
                raise ValueError(f"a page header has a field of type {kind}")
            length = skip(self)
            self.position += length

    def _byte(self) -> int:
        self.position += 1
        return self._content[self.position - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


# By Thrift's type: byte, double, binary. Page headers have no lists, sets or maps.
_SKIPPED: dict[int, Callable[[_Header], int]] = {
    3: lambda _: 1,
    7: lambda _: 8,
    8: lambda header: header._varint(),  # noqa: SLF001
}
