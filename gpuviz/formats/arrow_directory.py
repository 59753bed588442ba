"""A folder with ``manifest.json`` and one Arrow IPC or Parquet file per table."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpuviz.errors import FormatError, RecordingError
from gpuviz.formats import gpuviz
from gpuviz.formats.column_units import described, plain_schema
from gpuviz.formats.whole_folder import write_whole_folder
from gpuviz.recording.recording import Recording
from gpuviz.recording.validation import NonconformingTableError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

MANIFEST = gpuviz.MANIFEST
LAYOUT = "layout"
ARROW = "arrow"
PARQUET = "parquet"


def write_arrow(recording: Recording, path: "Path", *, overwrite: bool = False) -> "Path":
    """Write a folder of Arrow IPC files that can be mapped into memory; return its path.

    The folder is written atomically.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False, or ``path`` is not such a
            folder.
        OSError: The folder cannot be written.
    """
    return _write(recording, path, ARROW, overwrite=overwrite)


def write_parquet(recording: Recording, path: "Path", *, overwrite: bool = False) -> "Path":
    """Write a folder of Parquet files, compressed with Zstandard; return its path.

    The folder is written atomically.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False, or ``path`` is not such a
            folder.
        OSError: The folder cannot be written.
    """
    return _write(recording, path, PARQUET, overwrite=overwrite)


def layout(path: "Path") -> str:
    """Return the layout in a folder's manifest, ``arrow`` or ``parquet``; empty if there is none.

    Raises:
        OSError: The manifest exists but cannot be read.
    """
    try:
        values = json.loads((path / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return ""
    found = values.get(LAYOUT) if isinstance(values, dict) else None
    return found if found in {ARROW, PARQUET} else ""


def read(path: "Path") -> Recording:
    """Return the recording in a folder that `write_arrow` or `write_parquet` wrote.

    Raises:
        FormatError: It is not such a folder, or a file in it is missing or damaged.
        OSError: A file cannot be read.
    """
    kind = layout(path)
    if not kind:
        problem = f'missing, or has no "{LAYOUT}"; expected a folder that gpuviz exported'
        raise FormatError(str(path), MANIFEST, problem)
    manifest = gpuviz.read_manifest((path / MANIFEST).read_bytes(), str(path))
    extra = {key: value for key, value in manifest.extra.items() if key != LAYOUT}
    tables = {}
    for name, rows in manifest.tables.items():
        tables[name] = _read_table(path, f"{name}.{kind}", rows)
    if "memory_events" not in tables:
        raise FormatError(str(path), MANIFEST, 'expected "tables" to have memory_events')
    try:
        return Recording(tables, replace(manifest, extra=extra))
    except NonconformingTableError as error:
        raise FormatError(str(path), f"{error.table}.{kind}", error.problem) from None


def _write(recording: Recording, path: "Path", kind: str, *, overwrite: bool) -> "Path":
    rows = {name: table.num_rows for name, table in recording.tables.items()}
    unsafe = [name for name in rows if not name.replace("_", "a").isalnum()]
    if unsafe:
        raise RecordingError(f"the name of table {unsafe[0]!r} is not allowed as a file name")
    manifest = replace(
        recording.manifest,
        tables=rows,
        events=rows["memory_events"],
        extra={**recording.manifest.extra, LAYOUT: kind},
    )

    def write(folder: "Path") -> None:
        for name, table in recording.tables.items():
            _write_table(described(name, table), folder / f"{name}.{kind}", kind)
        (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")

    return write_whole_folder(
        path, write, overwrite=overwrite, is_replaceable=lambda there: bool(layout(there))
    )


def _write_table(table: "pa.Table", path: "Path", kind: str) -> None:
    import pyarrow as pa

    if kind == PARQUET:
        import pyarrow.parquet as pq

        pq.write_table(table, path, compression="zstd")
        return
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _read_table(folder: "Path", name: str, rows: int) -> "pa.Table":
    path = folder / name
    if not path.is_file() or path.parent != folder:
        raise FormatError(str(folder), name, f"missing; the manifest has {rows} rows")
    content = path.read_bytes()
    with gpuviz.naming(str(folder), name):
        table = _table_in(content, name)
    if table.num_rows != rows:
        problem = f"{table.num_rows} rows, the manifest has {rows}"
        raise FormatError(str(folder), name, problem)
    return table


def _table_in(content: bytes, name: str) -> "pa.Table":
    import pyarrow as pa

    source: Any = pa.BufferReader(content)
    if name.endswith(PARQUET):
        import pyarrow.parquet as pq

        table = pq.read_table(source)
    else:
        table = pa.ipc.open_file(source).read_all()
    table.validate(full=True)
    return plain_schema(table)
