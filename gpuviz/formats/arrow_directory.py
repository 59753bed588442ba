"""A folder with ``manifest.json`` and one Arrow IPC or Parquet file per table."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from gpuviz.data.recording_data import RecordingData
from gpuviz.data.validation import NonconformingTableError
from gpuviz.errors import FormatError, RecordingError
from gpuviz.formats import gpuviz
from gpuviz.formats.archive_members import MANIFEST, MAX_MANIFEST_BYTES
from gpuviz.formats.arrow_stream import decoded_bytes, known_schema, read_table
from gpuviz.formats.column_units import described, plain_schema
from gpuviz.formats.damage import naming
from gpuviz.formats.input_files import read_member
from gpuviz.formats.load_limit import LoadLimit
from gpuviz.formats.parquet_file import read_checked
from gpuviz.formats.whole_folder import write_whole_folder

LAYOUT = "layout"
ARROW = "arrow"
PARQUET = "parquet"
# File systems allow 255 bytes with the suffix.
_LONGEST_NAME = 200
_ARROW_START, _ARROW_END = b"ARROW1\0\0", b"ARROW1"


def write_arrow(recording: RecordingData, path: Path, *, overwrite: bool = False) -> Path:
    """Write a folder of Arrow IPC files that can be mapped into memory; return its path.

    The folder is written atomically.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False, or ``path`` is not such a
            folder.
        OSError: The folder cannot be written.
    """
    return _write(recording, path, ARROW, overwrite=overwrite)


def write_parquet(recording: RecordingData, path: Path, *, overwrite: bool = False) -> Path:
    """Write a folder of Parquet files, compressed with Zstandard; return its path.

    The folder is written atomically.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False, or ``path`` is not such a
            folder.
        OSError: The folder cannot be written.
    """
    return _write(recording, path, PARQUET, overwrite=overwrite)


def layout(path: Path) -> str:
    """Return the layout in a folder's manifest, ``arrow`` or ``parquet``; empty if there is none.

    Raises:
        OSError: The manifest exists but cannot be read.
    """
    try:
        values = json.loads(read_member(path, MANIFEST, MAX_MANIFEST_BYTES))
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return ""
    found = values.get(LAYOUT) if isinstance(values, dict) else None
    return str(found) if found in (ARROW, PARQUET) else ""


def read(path: Path, *, limit: LoadLimit | None = None) -> RecordingData:
    """Return the recording in a folder that `write_arrow` or `write_parquet` wrote.

    Raises:
        FormatError: It is not such a folder, or a file in it is missing, damaged or too large.
        OSError: A file cannot be read.
    """
    kind = layout(path)
    if not kind:
        problem = f'missing, or has no "{LAYOUT}"; expected a folder that gpuviz exported'
        raise FormatError(str(path), MANIFEST, problem)
    manifest = gpuviz.folder_manifest(path)
    manifest = gpuviz.noting_unknown(manifest, manifest.tables)
    extra = {key: value for key, value in manifest.extra.items() if key != LAYOUT}
    tables, limit = {}, limit or LoadLimit(path)
    for name, rows in manifest.tables.items():
        if known_schema(name) is not None:
            tables[name] = _read_table(path, name, kind, rows, limit)
    if "memory_events" not in tables:
        raise FormatError(str(path), MANIFEST, 'expected "tables" to have memory_events')
    try:
        return RecordingData(tables, replace(manifest, extra=extra))
    except NonconformingTableError as error:
        raise FormatError(str(path), f"{error.table}.{kind}", error.problem) from None


def _write(recording: RecordingData, path: Path, kind: str, *, overwrite: bool) -> Path:
    rows = {name: table.num_rows for name, table in recording.tables.items()}
    unsafe = [
        name
        for name in rows
        if not name.replace("_", "a").isalnum() or len(name.encode()) > _LONGEST_NAME
    ]
    if unsafe:
        raise RecordingError(f"the name of table {unsafe[0]!r} is not allowed as a file name")
    manifest = replace(
        recording.manifest,
        tables=rows,
        events=rows["memory_events"],
        extra={**recording.manifest.extra, LAYOUT: kind},
    )

    def write(folder: Path) -> None:
        for name, table in recording.tables.items():
            _write_table(described(name, table), folder / f"{name}.{kind}", kind)
        (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")

    return write_whole_folder(
        path, write, overwrite=overwrite, is_replaceable=lambda there: bool(layout(there))
    )


def _write_table(table: pa.Table, path: Path, kind: str) -> None:
    if kind == PARQUET:
        import pyarrow.parquet as pq

        pq.write_table(table, path, compression="zstd")
        return
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _read_table(folder: Path, name: str, kind: str, rows: int, limit: LoadLimit) -> pa.Table:
    member = f"{name}.{kind}"
    try:
        content = read_member(folder, member)
    except FileNotFoundError:
        problem = f"missing; the manifest has {rows} rows"
        raise FormatError(str(folder), member, problem) from None
    limit.take(member, len(content))
    with naming(str(folder), member):
        table = _table_in(content, name, member, limit)
    if table.num_rows != rows:
        problem = f"{table.num_rows} rows, the manifest has {rows}"
        raise FormatError(str(folder), member, problem)
    return table


def _table_in(content: bytes, name: str, member: str, limit: LoadLimit) -> pa.Table:
    if not member.endswith(PARQUET):
        return plain_schema(read_table(_stream_in(content), name, limit))
    table = read_checked(content, member, limit)
    table.validate(full=True)
    schema = known_schema(name)
    if schema is not None:
        limit.take(member, decoded_bytes(table, schema))
    return plain_schema(table)


def _stream_in(content: bytes) -> bytes:
    """Return the stream in an Arrow file, which is between a mark and an index of its messages.

    The index is not used: it could name one message any number of times.

    Raises:
        ValueError: It is not an Arrow file, or it is truncated.
    """
    if not content.startswith(_ARROW_START) or not content.endswith(_ARROW_END):
        raise ValueError("not an Arrow file, or truncated")
    return content[len(_ARROW_START) :]
