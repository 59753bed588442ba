"""Memory snapshots of PyTorch, as ``torch.cuda.memory._dump_snapshot`` writes them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from gpuviz import _core
from gpuviz.data.arrays import numbers
from gpuviz.data.manifest import Manifest
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import schemas
from gpuviz.data.validation import NonconformingTableError
from gpuviz.errors import FormatError
from gpuviz.formats.load_limit import LoadLimit

# The key of a manifest with what only these snapshots have.
EXTRA = "torch_snapshot"


def is_pickle(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a pickle of protocol 2 to 5."""
    return len(start) >= 2 and start[0] == 0x80 and 2 <= start[1] <= 5  # noqa: PLR2004


def read(
    path: Path,
    progress: Callable[[int, int], None] | None = None,
    *,
    limit: LoadLimit | None = None,
) -> RecordingData:
    """Return the recording of a torch memory snapshot.

    Nothing in the file is executed: the reader accepts plain values only. The state at the end is
    exactly the snapshot's. The state before the trace is inferred backwards from it; the
    recording's notes state what could not be inferred.

    Args:
        path: A pickle of protocol 2 to 5, of ``_snapshot()`` or of ``memory_snapshot()``.
        progress: Called with the bytes read and the total, at most 20 times a second.
        limit: Limits what the pickle's values may take; they need 2 to 4 times the file's size.

    Raises:
        FormatError: The file is damaged, rejected, or not a snapshot; the message names the part.
        OSError: The file cannot be read.
    """
    name = str(path)
    try:
        limit = limit or LoadLimit(path)
        manifest, columns = _core.read_torch_snapshot(name, limit.max_bytes, progress)
    except ValueError as error:
        if len(error.args) != 2:  # noqa: PLR2004 - of what progress() raises
            raise
        place, problem = error.args
        raise FormatError(name, place, f"{problem}; expected a torch memory snapshot") from None
    try:
        tables = {table: _table(table, columns.pop(table)) for table in list(columns)}
        return RecordingData(tables, Manifest.from_json(manifest))
    except NonconformingTableError as error:
        raise FormatError(name, error.table, error.problem) from None
    except ValueError as error:
        raise FormatError(name, "device_traces", str(error)) from None


def _table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    schema = schemas()[name]
    return pa.table([_array(columns[each.name], each.type) for each in schema], schema=schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    """Return a column in the form that `gpuviz._core.read_torch_snapshot` has it."""
    if pa.types.is_dictionary(kind):
        codes, words = values
        indices = numbers(codes, kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, _array(words, kind.value_type))
    if pa.types.is_list(kind):
        offsets, items = values
        return pa.ListArray.from_arrays(
            numbers(offsets, pa.int32()), numbers(items, kind.value_type)
        )
    if pa.types.is_string(kind):
        offsets, text = values
        buffers = (numbers(offsets, pa.int32()).buffers()[1], pa.py_buffer(text))
        return pa.StringArray.from_buffers(len(offsets) - 1, *buffers)
    return numbers(values, kind)
