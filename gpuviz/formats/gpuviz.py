"""The ``.gpuviz`` file: a ZIP with ``manifest.json`` and one Arrow IPC stream per table.

Derived tables are in the folder ``derived``. Those that are missing, of another version, or not
computed from the tables in the file are computed on load.
"""

import zipfile
import zlib
from contextlib import closing, contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from struct import error as struct_error
from typing import TYPE_CHECKING, BinaryIO

from gpuviz.errors import FormatError
from gpuviz.formats.parallel_deflate import LEVEL, Members
from gpuviz.formats.whole_file import write_whole
from gpuviz.recording.derived import DERIVED_VERSION, marked
from gpuviz.recording.manifest import Manifest
from gpuviz.recording.recording import Recording
from gpuviz.recording.validation import NonconformingTableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

MANIFEST = "manifest.json"
TABLE_SUFFIX = ".arrow"
DERIVED_FOLDER = "derived/"

# A browser decodes and shows one batch at a time.
BATCH_ROWS = 1 << 16

# Deflate's largest possible ratio; a member that declares more is damaged or hostile.
MAX_DEFLATE_RATIO = 1032
MAX_MANIFEST_BYTES = 64 << 20
MAX_TABLE_BYTES = 64 << 30
_ZIP_START = b"PK"

_DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct_error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    UnicodeError,
    ValueError,
    TypeError,
    OverflowError,
    KeyError,
    IndexError,
)


def write(recording: Recording, path: Path, *, overwrite: bool = False) -> Path:
    """Write a recording atomically to ``path``; return the path.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The file cannot be written.
    """

    def archive(file: BinaryIO) -> None:
        write_archive(file, recording)

    return write_whole(path, archive, overwrite=overwrite)


def is_archive(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a ZIP."""
    return start.startswith(_ZIP_START)


def read(path: Path) -> Recording:
    """Return the recording in a ``.gpuviz`` file.

    Raises:
        FormatError: The file is damaged, of another format, or of a newer version.
        OSError: The file does not exist or cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(len(_ZIP_START))
        # Check the start first, as a file of another format may be huge. Reading all bytes now
        # means that no disk error can occur later.
        return read_archive(start if start != _ZIP_START else start + file.read(), str(path))


def read_archive(content: bytes, path: str) -> Recording:
    """Return the recording in an archive; ``path`` names it in errors.

    Raises:
        FormatError: The archive is damaged, of another format, or of a newer version.
    """
    if not content.startswith(_ZIP_START):
        raise FormatError(path, "", "not a gpuviz recording; expected a ZIP archive")
    with naming(path, ""):
        archive = zipfile.ZipFile(BytesIO(content))
    with archive:
        members = _members(archive, path, len(content))
        manifest = read_manifest(_member_bytes(archive, members[MANIFEST], path), path)
        tables = {}
        for name, member in members.items():
            if name.endswith(TABLE_SUFFIX):
                content = _member_bytes(archive, member, path)
                with naming(path, name):
                    tables[name.removesuffix(TABLE_SUFFIX)] = read_stream(content)
    derived = _taken_out(tables)
    _check_rows(manifest, tables, path)
    with naming_table(path):
        return Recording(tables, manifest, derived)


def read_manifest(content: bytes, path: str) -> Manifest:
    """Parse a manifest.

    Raises:
        FormatError: It is damaged, of another format, or of a newer version.
    """
    try:
        return Manifest.from_json(content)
    except ValueError as error:
        raise FormatError(path, MANIFEST, str(error)) from None


def read_stream(content: bytes) -> "pa.Table":
    """Return the validated table of a complete Arrow IPC stream, with one chunk per column.

    Raises:
        ValueError: The bytes are not such a stream, or its values are out of range.
    """
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
        table = reader.read_all()
    table.validate(full=True)
    return table.unify_dictionaries().combine_chunks()


def write_stream(table: "pa.Table", sink: object) -> None:
    """Write a table as uncompressed Arrow batches that a browser can read one by one."""
    import pyarrow as pa

    table = table.unify_dictionaries()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for start in range(0, table.num_rows, BATCH_ROWS):
            writer.write_table(table.slice(start, BATCH_ROWS).combine_chunks())


def write_archive(file: BinaryIO, recording: Recording) -> None:
    """Write a recording to a file object."""
    rows = {name: table.num_rows for name, table in recording.tables.items()}
    manifest = replace(
        recording.manifest,
        tables=rows,
        events=rows["memory_events"],
        derived_version=DERIVED_VERSION,
    )
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive,
        closing(Members(archive)) as members,
    ):
        archive.writestr(_entry(MANIFEST), manifest.to_json(), compresslevel=LEVEL)
        for name, table in recording.tables.items():
            with members.open(_entry(name + TABLE_SUFFIX)) as member:
                write_stream(table, member)
        for name, table in marked(recording.derived, recording.tables).items():
            with members.open(_entry(DERIVED_FOLDER + name + TABLE_SUFFIX)) as member:
                write_stream(table, member)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


@contextmanager
def naming(path: str, member: str) -> "Iterator[None]":
    """Turn a library's exception for damaged bytes into a FormatError that names the member.

    Disk errors and out of memory pass through, because the bytes may be intact.
    """
    import pyarrow as pa

    try:
        yield
    except (FormatError, MemoryError):
        raise
    except (*_DAMAGE, OSError, pa.ArrowException) as error:
        # Arrow raises OSError without an errno for damaged bytes.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        summary = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(path, member, f"damaged ({summary})") from None


@contextmanager
def naming_table(path: str) -> "Iterator[None]":
    """Turn the error of an invalid table into a FormatError that names its member."""
    try:
        yield
    except NonconformingTableError as error:
        raise FormatError(path, error.table + TABLE_SUFFIX, error.problem) from None


def _members(archive: zipfile.ZipFile, path: str, size: int) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    if sum(member.compress_size for member in archive.infolist()) > size:
        raise FormatError(path, "", "damaged (its members overlap)")
    for member in archive.infolist():
        name = member.filename
        if name in members:
            raise FormatError(path, name, "damaged (the archive has it twice)")
        limit = MAX_MANIFEST_BYTES if name == MANIFEST else MAX_TABLE_BYTES
        possible = member.compress_size * MAX_DEFLATE_RATIO + 64
        if member.compress_size > size or member.file_size > min(limit, possible):
            problem = (
                f"damaged (declares {member.file_size} bytes from {member.compress_size} in a file "
                f"of {size}; at most {min(limit, possible)} are possible)"
            )
            raise FormatError(path, name, problem)
        members[name] = member
    if MANIFEST not in members:
        raise FormatError(path, MANIFEST, "missing, so this ZIP is not a whole gpuviz recording")
    return members


def _member_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str) -> bytes:
    with naming(path, member.filename):
        content = archive.read(member)
        if len(content) != member.file_size:
            raise EOFError(f"{len(content)} bytes, expected {member.file_size}")
        return content


def _taken_out(tables: "dict[str, pa.Table]") -> "dict[str, pa.Table]":
    """Remove the derived tables from an archive's tables, and return them."""
    names = [name for name in tables if name.startswith(DERIVED_FOLDER)]
    return {name.removeprefix(DERIVED_FOLDER): tables.pop(name) for name in names}


def _check_rows(manifest: Manifest, tables: "Mapping[str, pa.Table]", path: str) -> None:
    if "memory_events" not in tables:
        raise FormatError(path, "memory_events" + TABLE_SUFFIX, "missing")
    for name, rows in manifest.tables.items():
        if name not in tables:
            raise FormatError(path, name + TABLE_SUFFIX, f"missing; the manifest has {rows} rows")
        found = tables[name].num_rows
        if found != rows:
            raise FormatError(path, name + TABLE_SUFFIX, f"{found} rows, the manifest has {rows}")
    if manifest.initial_events > tables["memory_events"].num_rows:
        problem = f'"initial_events" is {manifest.initial_events}, more than there are events'
        raise FormatError(path, MANIFEST, problem)
