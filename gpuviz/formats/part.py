"""The ``.gpuviz.part`` folder: a growing or interrupted recording."""

import os
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from gpuviz.data.manifest import Manifest
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import Tables
from gpuviz.data.validation import conform, without_unknown_ids
from gpuviz.errors import FormatError, RecordingExistsError, SpoolError
from gpuviz.formats import gpuviz
from gpuviz.formats.append_stream import AppendStream, TornStream, read_torn
from gpuviz.formats.archive_members import MANIFEST, MAX_MANIFEST_BYTES
from gpuviz.formats.arrow_stream import TABLE_SUFFIX, checked, decoded_bytes, known_schema
from gpuviz.formats.damage import naming, naming_table
from gpuviz.formats.input_files import read_member
from gpuviz.formats.last_flush import LAST_FLUSH, LastFlush, Written
from gpuviz.formats.load_limit import LoadLimit
from gpuviz.formats.output_path import (
    check_free,
    check_part_free,
    check_recording_name,
    created_meanwhile,
    part_of,
)

EVENTS = "memory_events"
# Each refers to rows of the next.
_NAMING_TABLES = (EVENTS, "stacks", "frames")


class PartWriter:
    """Writes a growing recording to ``<path>.part/``, and at the end to ``<path>``.

    After a kill the directory can be loaded, without rows since the last flush. Not thread-safe.

    If the disk fails or the directory is removed, ``SpoolError`` is raised but no appended rows are
    lost: ``tables`` still returns all of them, and the next ``flush`` or ``finish`` tries again.

    Args:
        path: The path of the finished recording.
        manifest: The manifest at the start.
        overwrite: Whether ``finish`` replaces a file that exists.

    Raises:
        RecordingError: ``path`` has the suffix of a web page.
        RecordingExistsError: ``path`` exists and is not to be replaced, or ``<path>.part`` exists.
        SpoolError: The directory cannot be written.
    """

    def __init__(
        self, path: str | os.PathLike[str], manifest: Manifest, *, overwrite: bool = False
    ) -> None:
        self.path = Path(path)
        self.directory = part_of(self.path)
        self._streams: dict[str, AppendStream] = {}
        check_recording_name(self.path)
        self._overwrite = overwrite and not self.path.is_dir()
        check_free(
            self.path,
            overwrite=self._overwrite,
            remedy="record to another path or pass overwrite=True",
        )
        check_part_free(
            self.path,
            remedy=f'load it with gpuviz.load("{self.directory}"), then remove it, or record to '
            "another path",
        )
        with _spooling(self.directory, "created"):
            try:
                self.directory.mkdir()
            except FileExistsError:
                raise created_meanwhile(self.directory) from None
        try:
            self.describe(manifest)
        except SpoolError:
            self.discard()
            raise

    def describe(self, manifest: Manifest) -> None:
        """Replace the manifest in the directory.

        Raises:
            SpoolError: The disk failed.
        """
        with _spooling(self.directory):
            self._write_text(MANIFEST, replace(manifest, complete=False).to_json())

    def discard(self) -> None:
        """Remove the directory with its content."""
        self.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def close(self) -> None:
        """Close all files; appended rows can be read no more."""
        for stream in self._streams.values():
            stream.close()

    def append(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows of a table; they are on disk after the next ``flush``."""
        if table not in self._streams:
            self._streams[table] = AppendStream(self.directory / (table + TABLE_SUFFIX))
        self._streams[table].append(batch)

    def flush(self) -> None:
        """Write appended rows, so that they survive a kill of this process.

        Raises:
            SpoolError: The disk failed.
        """
        with _spooling(self.directory):
            for name in sorted(self._streams, key=_reading_order, reverse=True):
                self._streams[name].flush()
            written = {
                name: Written(stream.rows, stream.length, stream.checksum)
                for name, stream in self._streams.items()
            }
            self._write_text(LAST_FLUSH, LastFlush(time.time_ns(), written).to_json())

    def tables(self, leave_out: Collection[str] = ()) -> dict[str, pa.Table]:
        """Return every row appended so far, on disk or not.

        Args:
            leave_out: Tables not to read.

        Raises:
            OSError: A file cannot be read.
        """
        collected = {}
        for name, stream in self._streams.items():
            if name not in leave_out:
                parts = [stream.written(), stream.unwritten()]
                known = [part for part in parts if part is not None]
                collected[name] = pa.concat_tables(known).unify_dictionaries()
        return collected

    def rows(self, table: str) -> int:
        """Return the number of rows of a table that were appended."""
        stream = self._streams.get(table)
        return 0 if stream is None else stream.all_rows

    def bytes_on_disk(self, table: str) -> int:
        """Return the number of bytes of a table in its file."""
        stream = self._streams.get(table)
        return 0 if stream is None else stream.length

    def finish(self, recording: RecordingData, derived: Tables) -> None:
        """Write a recording to the path, in a new folder if its folder was removed.

        The directory is kept until ``discard``.

        Args:
            recording: The finished recording.
            derived: The marked derived tables and conclusions of its file.

        Raises:
            SpoolError: The disk is full; nothing in memory is lost.
            RecordingExistsError: The path was created in the meantime.
        """
        with _spooling(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            gpuviz.write(recording, self.path, derived, overwrite=self._overwrite)

    def _write_text(self, name: str, text: str) -> None:
        unfinished = self.directory / f".{name}.tmp"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(self.directory / name)


@contextmanager
def _spooling(path: Path, verb: str = "written") -> Iterator[None]:
    """Turn disk errors into a SpoolError that names ``path``."""
    try:
        yield
    except RecordingExistsError:
        raise
    except OSError as error:
        raise SpoolError(f"{path}: cannot be {verb} ({error.strerror or error})") from error


def read(directory: Path, *, limit: LoadLimit | None = None) -> RecordingData:
    """Return the recording in a ``.gpuviz.part`` directory, with notes on what is missing.

    The directory may grow in the meantime.

    Raises:
        FormatError: It is not such a directory, or its manifest or a table is damaged, too large or
            no file in the directory.
        OSError: A file cannot be read.
    """
    if not (directory / MANIFEST).exists():
        raise FormatError(str(directory), MANIFEST, "missing; expected a .gpuviz.part directory")
    manifest = gpuviz.folder_manifest(directory)
    limit = limit or LoadLimit(directory)
    flushed, tables = _last_flush(directory), {}
    notes = [_end_note(manifest, flushed)]
    there = {path.name.removesuffix(TABLE_SUFFIX) for path in directory.glob("*" + TABLE_SUFFIX)}
    manifest = gpuviz.noting_unknown(manifest, sorted(there))
    known = (name for name in there | set(flushed.tables) if known_schema(name) is not None)
    for name in sorted(known, key=_reading_order):
        torn = _read_table(directory, name, flushed.tables.get(name, Written(0, 0, 0)), limit)
        if torn.lost_bytes:
            notes.append(
                f"{name + TABLE_SUFFIX}: the last {torn.lost_bytes} bytes are an incomplete "
                "batch and were left out."
            )
        if torn.table is not None:
            tables[name] = torn.table
    return _recording(directory, tables, replace(manifest, complete=False), notes)


def _reading_order(name: str) -> tuple[int, str]:
    """Sort tables before those they refer to; written in reverse, no reference is unknown."""
    return (_NAMING_TABLES.index(name) if name in _NAMING_TABLES else len(_NAMING_TABLES), name)


def _read_table(directory: Path, name: str, written: Written, limit: LoadLimit) -> TornStream:
    member = name + TABLE_SUFFIX
    try:
        content = read_member(directory, member)
    except FileNotFoundError:
        problem = f"missing; {written.rows} rows were written"
        raise FormatError(str(directory), member, problem) from None
    limit.take(member, len(content))
    problem = written.problem(content)
    if problem:
        raise FormatError(str(directory), member, problem)
    with naming(str(directory), member):
        torn = read_torn(content, lambda stream: checked(stream, member, limit))
        schema = known_schema(name)
        if torn.table is not None and schema is not None:
            limit.take(member, decoded_bytes(torn.table, schema))
    found = torn.table.num_rows if torn.table is not None else 0
    if found < written.rows:
        problem = f"damaged ({found} rows can be read, {written.rows} were written)"
        raise FormatError(str(directory), member, problem)
    return torn


def _recording(
    directory: Path,
    tables: dict[str, pa.Table],
    manifest: Manifest,
    notes: list[str],
) -> RecordingData:
    with naming_table(str(directory)):
        conforming = conform(tables)
        events = conforming[EVENTS].num_rows
        manifest = replace(
            manifest,
            events=events,
            initial_events=min(manifest.initial_events, events),
            notes=(*manifest.notes, *notes),
        )
        return RecordingData(without_unknown_ids(conforming), manifest)


def _last_flush(directory: Path) -> LastFlush:
    try:
        return LastFlush.from_json(read_member(directory, LAST_FLUSH, MAX_MANIFEST_BYTES))
    except FileNotFoundError:
        return LastFlush()
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(str(directory), LAST_FLUSH, f"damaged ({error})") from None


def _end_note(manifest: Manifest, flushed: LastFlush) -> str:
    note = "The recording is unfinished: its program was killed, or is still running."
    if not flushed.unix_ns:
        return note + " The time of the last write is unknown."
    seconds = (flushed.unix_ns - manifest.start_unix_ns) / 1e9
    return (
        f"{note} What happened after the last write, {seconds:.1f} s after the start, is missing."
    )
