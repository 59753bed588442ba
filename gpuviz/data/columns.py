"""Columns of a table as NumPy arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpuviz.data.arrays import numbers, texts, values


def plain(column: pa.ChunkedArray) -> np.ndarray:
    """Return the values of a numeric column, without a copy if it has one chunk."""
    return _joined(column.chunks, column.type)


def codes(column: pa.ChunkedArray, names: Sequence[str]) -> np.ndarray:
    """Return the positions in ``names`` of a dictionary column's values; -1 for other values."""
    return _joined([_chunk_codes(chunk, names) for chunk in column.chunks], pa.int8())


def distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct values, ascending, without the import of ``np.unique``."""
    if len(values) and values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if high - low < len(values) and high < 1 << 63:
            is_there = np.zeros(high - low + 1, bool)
            is_there[np.subtract(values, low, dtype=np.int64)] = True
            return (np.flatnonzero(is_there) + low).astype(values.dtype)
    # Most columns are almost in order, which `stable` makes use of.
    ordered = np.sort(values, kind="stable")
    found: np.ndarray = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return found


def is_among(values: np.ndarray, known: np.ndarray) -> NDArray[np.bool_]:
    """Return which values are among distinct ascending ones, without the import of ``np.isin``."""
    if not len(known):
        return np.zeros(len(values), bool)
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: NDArray[np.bool_] = known[place] == values
    return found


def rows_at(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """Return some rows of a table, by number."""
    if not len(rows):
        return table.slice(0, 0)
    columns = [_values_at(column, rows) for column in table.columns]
    return pa.table(columns, schema=table.schema)


def _values_at(column: pa.ChunkedArray, rows: np.ndarray) -> pa.Array | pa.ChunkedArray:
    kind = column.type
    if not column.null_count and pa.types.is_integer(kind):
        return numbers(plain(column)[rows], kind)
    if not column.null_count and pa.types.is_string(kind):
        known = column.to_pylist()
        return texts([known[row] for row in rows.tolist()])
    if not column.null_count and pa.types.is_dictionary(kind):
        chunks = column.unify_dictionaries().chunks
        places = _joined([chunk.indices for chunk in chunks], kind.index_type)[rows]
        return pa.DictionaryArray.from_arrays(
            numbers(places, kind.index_type), chunks[0].dictionary
        )
    return column.take(numbers(rows, pa.int64()))


def _joined(chunks: list[pa.Array], kind: pa.DataType) -> np.ndarray:
    if len(chunks) == 1:
        joined = chunks[0]
    else:
        joined = pa.concat_arrays(chunks) if chunks else numbers([], kind)
    return values(joined)


def _chunk_codes(chunk: Any, names: Sequence[str]) -> pa.Array:
    own = chunk.dictionary.to_pylist()
    if tuple(own) == tuple(names[: len(own)]):
        return chunk.indices
    known = np.array([names.index(n) if n in names else -1 for n in own], np.int8)
    return numbers(known[values(chunk.indices)], pa.int8())
