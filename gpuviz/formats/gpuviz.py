"""The ``.gpuviz`` file: a ZIP with ``manifest.json`` and one Arrow IPC stream per table.

Derived tables and conclusions are in the folder ``derived``. They are read on first use if the file
has the seal of this user (`gpuviz.formats.seal`); those that are missing or of another version, and
all of files without the seal, are computed when they are needed.
"""

import zipfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from gpuviz.data import conclusions
from gpuviz.data.derived import DERIVED_VERSION
from gpuviz.data.manifest import Manifest
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.stored_tables import StoredTables
from gpuviz.data.tables import Tables
from gpuviz.errors import FormatError
from gpuviz.formats.archive_members import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    check_ends,
    member_bytes,
    members_of,
    opened,
)
from gpuviz.formats.arrow_stream import TABLE_SUFFIX, known_schema, read_table
from gpuviz.formats.compressed_member import CompressedMember
from gpuviz.formats.damage import naming, naming_table
from gpuviz.formats.input_files import read_member
from gpuviz.formats.load_limit import LoadLimit
from gpuviz.formats.output_path import check_recording_name
from gpuviz.formats.parallel_deflate import LEVEL, Members
from gpuviz.formats.seal import is_sealed, seal
from gpuviz.formats.whole_file import write_whole

DERIVED_FOLDER = "derived/"

# A browser decodes and shows one batch at a time.
BATCH_ROWS = 1 << 16

_QUOTING = "The file says: "


def write(
    recording: RecordingData,
    path: Path,
    derived: Tables,
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


def read(path: Path, *, limit: LoadLimit | None = None) -> RecordingData:
    """Return the recording in a ``.gpuviz`` file.

    Raises:
        FormatError: The file is damaged, of another format, of a newer version, or too large.
        OSError: The file does not exist or cannot be read.
    """
    with path.open("rb") as file:
        check_ends(file, str(path))
        # Reading all bytes now means that no disk error can occur later.
        return read_archive(file.read(), str(path), limit or LoadLimit(path))


def read_archive(content: bytes, path: str, limit: LoadLimit) -> RecordingData:
    """Return the recording in an archive; ``path`` names it in errors.

    Raises:
        FormatError: The archive is damaged, of another format, of a newer version, or too large.
    """
    with opened(content, path) as archive:
        members = members_of(archive, path, len(content))
        limit.take(MANIFEST, members[MANIFEST].file_size)
        manifest = read_manifest(member_bytes(archive, members[MANIFEST], path), path)
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
            table = member_bytes(archive, member, path)
            with naming(path, member.filename):
                tables[name] = read_known(table, name, limit)
    manifest = noting_unknown(manifest, names)
    _check_rows(manifest, tables, path)
    with naming_table(path):
        return RecordingData(tables, manifest, StoredTables(derived))


def noting_unknown(manifest: Manifest, names: Iterable[str]) -> Manifest:
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


def read_known(content: bytes, name: str, limit: LoadLimit) -> pa.Table:
    """Return the table ``name`` in a complete Arrow IPC stream, with one chunk per column.

    Raises:
        FormatError: The table takes more than the limit.
        ValueError: The bytes are not such a stream, or its values are out of range.
    """
    return read_table(content, name, limit).unify_dictionaries().combine_chunks()


def _read_later(member: CompressedMember, name: str, path: str, limit: LoadLimit) -> pa.Table:
    with naming(path, name + TABLE_SUFFIX):
        return read_known(member.decompressed(), name, limit)


def write_stream(table: pa.Table, sink: object) -> None:
    """Write a table as uncompressed Arrow batches that a browser can read one by one."""
    table = table.unify_dictionaries()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for start in range(0, table.num_rows, BATCH_ROWS):
            writer.write_table(table.slice(start, BATCH_ROWS).combine_chunks())


def write_archive(file: BinaryIO, recording: RecordingData, derived: Tables) -> None:
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


def append_conclusions(file: BinaryIO, conclusions: Tables) -> int:
    """Add marked conclusions to the archive in a file object, which is also read, and seal it.

    Returns:
        Where they and the directory begin.
    """
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        begin = archive.start_dir
        _write_conclusions(archive, conclusions)
    seal(file)
    return begin


def write_conclusions(file: BinaryIO, conclusions: Tables) -> None:
    """Write the conclusions of a recording as an archive of their own, for a browser.

    Args:
        file: The file.
        conclusions: The marked tables.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        manifest = Manifest(derived_version=DERIVED_VERSION)
        archive.writestr(_entry(MANIFEST), manifest.to_json())
        _write_conclusions(archive, conclusions)


def _write_conclusions(archive: zipfile.ZipFile, conclusions: Tables) -> None:
    for name, table in conclusions.items():
        with archive.open(_entry(DERIVED_FOLDER + name + TABLE_SUFFIX), "w") as member:
            write_stream(table, member)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _check_rows(manifest: Manifest, tables: Tables, path: str) -> None:
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
