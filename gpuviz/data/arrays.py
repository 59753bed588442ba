"""Conversion of numbers, texts and rows to Arrow and back, without pyarrow's own conversions.

Those import pandas, if it is installed, and ``pyarrow.compute``: a third of a second in a program
that may use neither. These import nothing, so they also work while Python exits.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_INTEGERS = {
    getattr(pa, name)().id: np.dtype(name)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}


def numbers(
    values: np.ndarray | Sequence[int],
    kind: pa.DataType,
    *,
    unknown: NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Return an array of integers, without a copy if they have that type.

    Args:
        values: The integers.
        kind: An integer type.
        unknown: Which values are null; none if omitted.

    Raises:
        OverflowError: A value is out of range.
    """
    converted = np.ascontiguousarray(values, _INTEGERS[kind.id])
    if not isinstance(values, np.ndarray):
        is_exact = converted.tolist() == list(values)
    else:
        is_exact = values.dtype == converted.dtype or np.array_equal(converted, values)
    if not is_exact:
        raise OverflowError(f"a value is out of range for {kind}")
    valid = None if unknown is None else pa.py_buffer(np.packbits(~unknown, bitorder="little"))
    return pa.Array.from_buffers(kind, len(converted), [valid, pa.py_buffer(converted)])


def integer_table(columns: Mapping[str, np.ndarray]) -> pa.Table:
    """Return a table of columns of integers and truth values, all of the same length.

    Unlike ``pa.array``, it imports nothing more of NumPy, which a short command would notice.
    """
    return pa.table({name: _column(values) for name, values in columns.items()})


def _column(values: np.ndarray) -> pa.Array:
    kind = pa.from_numpy_dtype(values.dtype)
    if pa.types.is_boolean(kind):
        bits = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(kind, len(values), [None, bits])
    return numbers(values, kind)


def texts(values: Sequence[str]) -> pa.StringArray:
    """Return an array of texts.

    Raises:
        UnicodeEncodeError: A text has lone surrogates.
        OverflowError: They have 2 GiB or more.
    """
    encoded = [text.encode() for text in values]
    ends = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=ends[1:])
    offsets = numbers(ends, pa.int32()).buffers()[1]
    return pa.StringArray.from_buffers(len(encoded), offsets, pa.py_buffer(b"".join(encoded)))


def coded(codes: np.ndarray, words: Sequence[str]) -> pa.DictionaryArray:
    """Return an array of texts from their positions in ``words``."""
    return pa.DictionaryArray.from_arrays(numbers(codes, pa.int8()), texts(words))


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return an array of any type of a recording's columns.

    Raises:
        OverflowError: A value is out of range.
    """
    if pa.types.is_dictionary(kind):
        position: dict[str, int] = {}
        places = [position.setdefault(value, len(position)) for value in values]
        indices = numbers(places, kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, _words(tuple(position)), safe=False)
    if pa.types.is_list(kind):
        ends = [0]
        for each in values:
            ends.append(ends[-1] + len(each))
        joined = [item for each in values for item in each]
        offsets = numbers(ends, pa.int32()).buffers()[1]
        items = array(joined, kind.value_type)
        # Unlike ListArray.from_arrays, this keeps the GIL.
        return pa.Array.from_buffers(kind, len(values), [None, offsets], children=[items])
    return texts(values) if pa.types.is_string(kind) else numbers(values, kind)


@lru_cache(256)
def _words(words: tuple[str, ...]) -> pa.StringArray:
    return texts(words)


def batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows, which have all columns, as a batch."""
    columns = [array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def with_columns(table: pa.Table, **columns: np.ndarray | pa.Array) -> pa.Table:
    """Return a table of which some columns are replaced: integers, or arrays of their types."""
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        field = table.schema.field(place)
        is_array = isinstance(values, np.ndarray)
        column = numbers(values, field.type) if is_array else values
        table = table.set_column(place, field, column)
    return table


@cache
def empty(schema: pa.Schema) -> pa.Table:
    """Return a table without rows."""
    return pa.Table.from_batches([batch_of([], schema)])


def values(array: pa.Array) -> np.ndarray:
    """Return the values of an array of numbers without nulls, read-only and without a copy."""
    kind = _INTEGERS.get(array.type.id)
    if kind is None or array.null_count:
        converted: np.ndarray = array.to_numpy()  # raises an error for nulls
        return converted
    content = array.buffers()[1]
    if not len(array) or content is None:
        return np.zeros(0, kind)
    found: np.ndarray = np.frombuffer(content, kind, len(array), array.offset * kind.itemsize)
    found.flags.writeable = False
    return found
