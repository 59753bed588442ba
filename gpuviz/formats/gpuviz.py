"""The ``.gpuviz`` file: a ZIP with ``manifest.json`` and one Arrow IPC stream per table.

Derived tables and conclusions are in the folder ``derived``. They are read on first use if the file
has the seal of this user (`gpuviz.formats.seal`); those that are missing or of another version, and
all of files without the seal, are computed when they are needed.
"""

import os
import zipfile
import zlib
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from struct import error as struct_error
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from gpuviz.data import conclusions
from gpuviz.data.derived import DERIVED_VERSION
from gpuviz.data.manifest import Manifest
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.stored_tables import StoredTables
from gpuviz.data.validation import NonconformingTableError
from gpuviz.errors import FormatError
from gpuviz.formats.arrow_stream import TABLE_SUFFIX, known_schema, read_table
from gpuviz.formats.compressed_member import CompressedMember
from gpuviz.formats.input_files import read_member
from gpuviz.formats.load_limit import LoadLimit
from gpuviz.formats.output_path import check_recording_name
from gpuviz.formats.parallel_deflate import LEVEL, Members
from gpuviz.formats.seal import is_sealed, seal
from gpuviz.formats.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MANIFEST = "manifest.json"
DERIVED_FOLDER = "derived/"

# A browser decodes and shows one batch at a time.
BATCH_ROWS = 1 << 16

# Deflate's largest possible ratio; a member that declares more is damaged or hostile.
MAX_DEFLATE_RATIO = 1032
# JSON takes up to 30 times as much memory as text.
MAX_MANIFEST_BYTES = 8 << 20
MAX_MEMBERS = 10_000
_ZIP_START = b"PK"
_ZIP_ENTRY, _ZIP_END = b"PK\x01\x02", b"PK\x05\x06"
# The end of a ZIP is in its last bytes: 22, of which two are the size of a comment, and that.
_ZIP_END_BYTES = 22
_ZIP_TAIL = _ZIP_END_BYTES + (1 << 16)
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

_QUOTING = "The file says: "
_NO_ARCHIVE = "not a gpuviz recording; expected a ZIP archive"
_NO_END = "damaged or truncated (the end of the ZIP archive is missing)"

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


def write(
    recording: RecordingData,
    path: Path,
    derived: "Mapping[str, pa.Table]",
    *,
    overwrite: bool = False,
) -> Path:
    """Write a recording atomically to ``path``; return the path.

    Args:
        recording: The recording.
        path: The file.
        derived: What `gpuviz.data.derived.marked` and `gpuviz.data.conclusions.marked` returned.
        overwrite: Whether to replace an existing file.

    Raises:
        RecordingError: ``path`` has the suffix of a web page.
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The file cannot be written.
    """
    check_recording_name(path)

    def archive(file: BinaryIO) -> None:
        write_archive(file, recording, derived)
        seal(file)

    return write_whole(path, archive, overwrite=overwrite)


def is_archive(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a ZIP."""
    return start.startswith(_ZIP_START)


def read(path: Path, *, limit: LoadLimit | None = None) -> RecordingData:
    """Return the recording in a ``.gpuviz`` file.

    Raises:
        FormatError: The file is damaged, of another format, of a newer version, or too large.
        OSError: The file does not exist or cannot be read.
    """
    with path.open("rb") as file:
        _check_ends(file, str(path))
        # Reading all bytes now means that no disk error can occur later.
        return read_archive(file.read(), str(path), limit or LoadLimit(path))


def _check_ends(file: BinaryIO, path: str) -> None:
    """Check the start and the end of an archive, because the rest may be huge."""
    start = file.read(len(_ZIP_START))
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _ZIP_TAIL))
    tail = file.read()
    file.seek(0)
    if start != _ZIP_START:
        raise FormatError(path, "", _NO_ARCHIVE)
    if _ZIP_END not in tail:
        raise FormatError(path, "", _NO_END)


def read_archive(content: bytes, path: str, limit: LoadLimit) -> RecordingData:
    """Return the recording in an archive; ``path`` names it in errors.

    Raises:
        FormatError: The archive is damaged, of another format, of a newer version, or too large.
    """
    if not content.startswith(_ZIP_START):
        raise FormatError(path, "", _NO_ARCHIVE)
    if content.count(_ZIP_ENTRY) > MAX_MEMBERS:
        raise FormatError(path, "", f"damaged (more than {MAX_MEMBERS} members)")
    _check_comment(content, path)
    with naming(path, ""):
        archive = zipfile.ZipFile(BytesIO(content))
    with archive:
        members = _members(archive, path, len(content))
        limit.take(MANIFEST, members[MANIFEST].file_size)
        manifest = read_manifest(_member_bytes(archive, members[MANIFEST], path), path)
        names = [name.removesuffix(TABLE_SUFFIX) for name in members if name != MANIFEST]
        trusted = is_sealed(content)
        manifest = manifest if trusted else _quoted(manifest)
        tables, derived = {}, {}
        for name in names:
            is_derived = name.startswith(DERIVED_FOLDER)
            if known_schema(name) is None or (is_derived and not trusted):
                continue
            member = members[name + TABLE_SUFFIX]
            limit.take(member.filename, member.file_size)
            if is_derived:
                with naming(path, member.filename):
                    later = CompressedMember.of(content, member)
                read = partial(_read_later, later, name, path, limit)
                derived[name.removeprefix(DERIVED_FOLDER)] = read
                continue
            table = _member_bytes(archive, member, path)
            with naming(path, member.filename):
                tables[name] = read_known(table, name, limit)
    manifest = noting_unknown(manifest, names)
    _check_rows(manifest, tables, path)
    with naming_table(path):
        return RecordingData(tables, manifest, StoredTables(derived))


def _check_comment(content: bytes, path: str) -> None:
    """Check that the comment at the end of an archive is whole, which `zipfile` does not."""
    end = content.rfind(_ZIP_END, max(0, len(content) - _ZIP_TAIL))
    sized = content[end:][:_ZIP_END_BYTES]
    if end >= 0 and end + len(sized) + int.from_bytes(sized[20:], "little") > len(content):
        raise FormatError(path, "", _NO_END)


def noting_unknown(manifest: Manifest, names: "Iterable[str]") -> Manifest:
    """Return the manifest with a note on tables that this version of gpuviz does not know."""
    retired = {f"{DERIVED_FOLDER}{name}" for name in conclusions.RETIRED}
    unknown = [name for name in names if known_schema(name) is None and name not in retired]
    if not unknown:
        return manifest
    named = ", ".join(repr(name[:40]) for name in unknown[:5])
    more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""  # noqa: PLR2004
    note = f"The file has tables that this version of gpuviz does not read: {named}{more}."
    if note in manifest.notes:
        return manifest
    return replace(manifest, notes=(*manifest.notes, note))


def _quoted(manifest: Manifest) -> Manifest:
    """Return the manifest of somebody else's file, whose sentences are not gpuviz's own."""

    def quoted(sentence: str) -> str:
        return sentence if sentence.startswith(_QUOTING) else _QUOTING + sentence

    label = quoted(manifest.label) if manifest.label else ""
    return replace(manifest, label=label, notes=tuple(map(quoted, manifest.notes)))


def read_manifest(content: bytes, path: str) -> Manifest:
    """Parse a manifest.

    Raises:
        FormatError: It is damaged, of another format, or of a newer version.
    """
    try:
        return Manifest.from_json(content)
    except ValueError as error:
        raise FormatError(path, MANIFEST, str(error)) from None


def folder_manifest(folder: Path) -> Manifest:
    """Return the manifest in a folder.

    Raises:
        FormatError: It is damaged, no file, of another format, or of a newer version.
        OSError: It cannot be read.
    """
    return read_manifest(read_member(folder, MANIFEST, MAX_MANIFEST_BYTES), str(folder))


def read_known(content: bytes, name: str, limit: LoadLimit) -> "pa.Table":
    """Return the table ``name`` in a complete Arrow IPC stream, with one chunk per column.

    Raises:
        FormatError: The table takes more than the limit.
        ValueError: The bytes are not such a stream, or its values are out of range.
    """
    return read_table(content, name, limit).unify_dictionaries().combine_chunks()


def _read_later(member: CompressedMember, name: str, path: str, limit: LoadLimit) -> "pa.Table":
    with naming(path, name + TABLE_SUFFIX):
        return read_known(member.decompressed(), name, limit)


def write_stream(table: "pa.Table", sink: object) -> None:
    """Write a table as uncompressed Arrow batches that a browser can read one by one."""
    table = table.unify_dictionaries()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for start in range(0, table.num_rows, BATCH_ROWS):
            writer.write_table(table.slice(start, BATCH_ROWS).combine_chunks())


def write_archive(
    file: BinaryIO, recording: RecordingData, derived: "Mapping[str, pa.Table]"
) -> None:
    """Write a recording, its marked derived tables and conclusions, without a seal."""
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
        tables = [*recording.tables.items()]
        tables += [(DERIVED_FOLDER + name, table) for name, table in derived.items()]
        # The first picture needs all of the small tables, but only parts of the large ones.
        for name, table in sorted(tables, key=lambda each: each[1].num_rows > BATCH_ROWS):
            with members.open(_entry(name + TABLE_SUFFIX)) as member:
                write_stream(table, member)


def append_conclusions(file: BinaryIO, conclusions: "Mapping[str, pa.Table]") -> int:
    """Add marked conclusions to the archive in a file object, which is also read, and seal it.

    Returns:
        Where they and the directory begin.
    """
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        begin = archive.start_dir
        _write_conclusions(archive, conclusions)
    seal(file)
    return begin


def write_conclusions(file: BinaryIO, conclusions: "Mapping[str, pa.Table]") -> None:
    """Write the conclusions of a recording as an archive of their own, for a browser.

    Args:
        file: The file.
        conclusions: The marked tables.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        manifest = Manifest(derived_version=DERIVED_VERSION)
        archive.writestr(_entry(MANIFEST), manifest.to_json())
        _write_conclusions(archive, conclusions)


def _write_conclusions(archive: zipfile.ZipFile, conclusions: "Mapping[str, pa.Table]") -> None:
    for name, table in conclusions.items():
        with archive.open(_entry(DERIVED_FOLDER + name + TABLE_SUFFIX), "w") as member:
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
    """Return the manifest and the tables of an archive by name; other members are not read."""
    members: dict[str, zipfile.ZipInfo] = {}
    if sum(member.compress_size for member in archive.infolist()) > size:
        raise FormatError(path, "", "damaged (its members overlap)")
    for member in archive.infolist():
        name = member.filename
        if name != MANIFEST and not name.endswith(TABLE_SUFFIX):
            continue
        if name in members:
            raise FormatError(path, name, "damaged (the archive has it twice)")
        _check_member(member, path, size)
        members[name] = member
    if MANIFEST not in members:
        raise FormatError(path, MANIFEST, "missing, so this ZIP is not a whole gpuviz recording")
    return members


def _check_member(member: zipfile.ZipInfo, path: str, size: int) -> None:
    possible = member.compress_size * MAX_DEFLATE_RATIO + 64
    if member.filename == MANIFEST:
        possible = min(possible, MAX_MANIFEST_BYTES)
    if member.compress_size > size or member.file_size > possible:
        problem = (
            f"damaged (declares {member.file_size} bytes from {member.compress_size} in a file "
            f"of {size}; at most {possible} are possible)"
        )
        raise FormatError(path, member.filename, problem)
    if member.compress_type not in _METHODS:
        problem = f"compressed by method {member.compress_type}; expected deflate"
        raise FormatError(path, member.filename, problem)


def _member_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str) -> bytes:
    with naming(path, member.filename):
        with archive.open(member) as file:
            # Without a number it would expand everything, whatever size is declared.
            content = file.read(member.file_size)
        if len(content) != member.file_size:
            raise EOFError(f"{len(content)} bytes, expected {member.file_size}")
        return content


def _check_rows(manifest: Manifest, tables: "Mapping[str, pa.Table]", path: str) -> None:
    if "memory_events" not in tables:
        raise FormatError(path, "memory_events" + TABLE_SUFFIX, "missing")
    for name, rows in manifest.tables.items():
        if known_schema(name) is None:
            continue
        if name not in tables:
            raise FormatError(path, name + TABLE_SUFFIX, f"missing; the manifest has {rows} rows")
        found = tables[name].num_rows
        if found != rows:
            raise FormatError(path, name + TABLE_SUFFIX, f"{found} rows, the manifest has {rows}")
    if manifest.initial_events > tables["memory_events"].num_rows:
        problem = f'"initial_events" is {manifest.initial_events}, more than there are events'
        raise FormatError(path, MANIFEST, problem)
