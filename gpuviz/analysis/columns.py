"""Columns of a table as NumPy arrays."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray


def plain(column: "pa.ChunkedArray") -> "NDArray[Any]":
    """Return the values of a numeric column, without a copy if it has one chunk."""
    return _joined(column.chunks, column.type)


def codes(column: "pa.ChunkedArray", names: "Sequence[str]") -> "NDArray[Any]":
    """Return the positions in ``names`` of a dictionary column's values; -1 for other values."""
    import pyarrow as pa

    return _joined([_chunk_codes(chunk, names) for chunk in column.chunks], pa.int8())


def _joined(chunks: "list[pa.Array]", kind: "pa.DataType") -> "NDArray[Any]":
    import pyarrow as pa

    if len(chunks) == 1:
        joined = chunks[0]
    else:
        joined = pa.concat_arrays(chunks) if chunks else pa.array([], kind)
    values: NDArray[Any] = joined.to_numpy()
    return values


def _chunk_codes(chunk: Any, names: "Sequence[str]") -> "pa.Array":
    import pyarrow as pa

    own = chunk.dictionary.to_pylist()
    if tuple(own) == tuple(names[: len(own)]):
        return chunk.indices
    known = pa.array([names.index(n) if n in names else -1 for n in own], pa.int8())
    return known.take(chunk.indices)
