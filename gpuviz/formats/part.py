"""The ``.gpuviz.part`` folder: a growing or interrupted recording."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz.errors import FormatError, RecordingExistsError, SpoolError
from gpuviz.formats import gpuviz
from gpuviz.formats.append_stream import AppendStream, TornStream, read_torn
from gpuviz.formats.gpuviz import MANIFEST, TABLE_SUFFIX
from gpuviz.formats.last_flush import LAST_FLUSH, LastFlush, Written
from gpuviz.recording.recording import Recording
from gpuviz.recording.validation import conform, without_unknown_ids

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa

    from gpuviz.recording.manifest import Manifest

EVENTS = "memory_events"
# Each names rows of the next.
_NAMING_TABLES = (EVENTS, "stacks", "frames")


class PartWriter:
    """Writes a growing recording to ``<path>.part/``, and at the end to ``<path>``.

    After a kill the directory loads; what came after the last flush is lost. For one thread.

    When the disk fails, one ``SpoolError`` is raised and batches are kept in memory from then on:
    nothing that was appended is lost, and ``finish`` or ``tables`` still has all of it.

    Args:
        path: Where the finished recording goes.
        manifest: What is known at the start.

    Raises:
        RecordingExistsError: Something is at ``path`` or at ``<path>.part``.
        SpoolError: The directory cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], manifest: "Manifest") -> None:
        self.path = Path(path)
        self.directory = self.path.with_name(self.path.name + ".part")
        self.manifest = manifest
        self._streams: dict[str, AppendStream] = {}
        self._in_memory: dict[str, list[pa.Table]] = {}
        self._failed = False
        _check_free(self.path, self.directory)
        try:
            self.directory.mkdir()
        except FileExistsError:
            raise RecordingExistsError(
                f"{self.directory} exists; it was created in the meantime"
            ) from None
        except OSError as error:
            raise SpoolError(f"{self.directory}: cannot be created ({error})") from error
        try:
            self.describe(manifest)
        except SpoolError:
            self.discard()
            raise

    def describe(self, manifest: "Manifest") -> None:
        """Replace what the directory says of the recording as a whole.

        Raises:
            SpoolError: The disk failed.
        """
        try:
            self._write_text(MANIFEST, replace(manifest, complete=False).to_json())
        except OSError as error:
            raise SpoolError(f"{self.directory}: cannot be written ({error})") from error

    def discard(self) -> None:
        """Remove the directory with everything in it."""
        self._close_streams()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def failed(self) -> bool:
        """Whether the disk failed, so that batches are kept in memory."""
        return self._failed

    def append(self, table: str, batch: "pa.RecordBatch") -> None:
        """Take the next rows of a table; they are on disk after the next ``flush``."""
        import pyarrow as pa

        if self._failed:
            self._in_memory.setdefault(table, []).append(pa.Table.from_batches([batch]))
            return
        if table not in self._streams:
            self._streams[table] = AppendStream(self.directory / (table + TABLE_SUFFIX))
        self._streams[table].append(batch)

    def flush(self) -> None:
        """Write what was appended, so that it survives a kill of this process.

        Raises:
            SpoolError: The disk failed; raised once, later calls do nothing.
        """
        if self._failed:
            return
        try:
            for name in sorted(self._streams, key=_reading_order, reverse=True):
                self._streams[name].flush()
            written = {
                name: Written(stream.rows, stream.length, stream.checksum)
                for name, stream in self._streams.items()
            }
            self._write_text(LAST_FLUSH, LastFlush(time.time_ns(), written).to_json())
        except OSError as error:
            self._keep_in_memory()
            raise SpoolError(
                f"{self.directory}: cannot be written ({error}); the recording continues in memory",
            ) from error

    def tables(self, leave_out: "Collection[str]" = ()) -> "dict[str, pa.Table]":
        """Return every row appended so far, from disk and from memory.

        Args:
            leave_out: Tables not to read.

        Raises:
            OSError: What is on disk cannot be read.
        """
        import pyarrow as pa

        collected = {}
        for name in dict.fromkeys([*self._streams, *self._in_memory]):
            if name in leave_out:
                continue
            parts = list(self._in_memory.get(name, []))
            if name in self._streams:
                stream = self._streams[name]
                parts = [stream.written(), stream.unwritten(), *parts]
            known = [part for part in parts if part is not None]
            collected[name] = pa.concat_tables(known).unify_dictionaries()
        return collected

    def bytes_on_disk(self, table: str) -> int:
        """Return how much of a table is in its file."""
        stream = self._streams.get(table)
        return 0 if stream is None else stream.length

    def finish(self, manifest: "Manifest") -> Path:
        """Write the finished recording, remove the directory, and return the recording's path.

        Raises:
            SpoolError: The disk is full; the directory is kept and nothing in memory is lost.
            RecordingExistsError: Meanwhile something came to be at the path.
        """
        tables = self.tables()
        try:
            path = gpuviz.write(Recording(tables, manifest), self.path)
        except RecordingExistsError:
            raise
        except OSError as error:
            raise SpoolError(f"{self.path}: cannot be written ({error})") from error
        self._close_streams()
        shutil.rmtree(self.directory, ignore_errors=True)
        return path

    def close(self) -> None:
        """Leave the directory as it is after a last flush; it loads as an incomplete recording."""
        try:
            self.flush()
        finally:
            self._close_streams()

    def _close_streams(self) -> None:
        for stream in self._streams.values():
            stream.close()

    def _keep_in_memory(self) -> None:
        self._failed = True

    def _write_text(self, name: str, text: str) -> None:
        unfinished = self.directory / f".{name}.tmp"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(self.directory / name)


def read(directory: Path) -> Recording:
    """Return the recording in a ``.gpuviz.part`` directory; its notes say what is missing.

    It may grow meanwhile.

    Raises:
        FormatError: The directory is not one, or its manifest or a table is damaged.
        OSError: Something in it cannot be read.
    """
    manifest_path = directory / MANIFEST
    if not manifest_path.is_file():
        raise FormatError(str(directory), MANIFEST, "missing; expected a .gpuviz.part directory")
    manifest = gpuviz.read_manifest(manifest_path.read_bytes(), str(directory))
    flushed, tables = _last_flush(directory), {}
    notes = [_end_note(manifest, flushed)]
    there = {path.name.removesuffix(TABLE_SUFFIX) for path in directory.glob("*" + TABLE_SUFFIX)}
    for name in sorted(there | set(flushed.tables), key=_reading_order):
        torn = _read_table(directory, name, flushed.tables.get(name, Written(0, 0, 0)))
        if torn.lost_bytes:
            notes.append(
                f"{name + TABLE_SUFFIX}: the last {torn.lost_bytes} bytes are an incomplete "
                "batch and were left out."
            )
        if torn.table is not None:
            tables[name] = torn.table
    return _recording(directory, tables, replace(manifest, complete=False), notes)


def _reading_order(name: str) -> tuple[int, str]:
    """Sort what names things before what they are; written in reverse, no name is unknown."""
    return (_NAMING_TABLES.index(name) if name in _NAMING_TABLES else len(_NAMING_TABLES), name)


def _read_table(directory: Path, name: str, written: Written) -> TornStream:
    path = directory / (name + TABLE_SUFFIX)
    if not path.exists():
        raise FormatError(str(directory), path.name, f"missing; {written.rows} rows were written")
    content = path.read_bytes()
    problem = written.problem(content)
    if problem:
        raise FormatError(str(directory), path.name, problem)
    with gpuviz.naming(str(directory), path.name):
        torn = read_torn(content)
    found = torn.table.num_rows if torn.table is not None else 0
    if found < written.rows:
        problem = f"damaged ({found} rows can be read, {written.rows} were written)"
        raise FormatError(str(directory), path.name, problem)
    return torn


def _recording(
    directory: Path,
    tables: "dict[str, pa.Table]",
    manifest: "Manifest",
    notes: list[str],
) -> Recording:
    with gpuviz.naming_table(str(directory)):
        conforming = conform(tables)
        events = conforming[EVENTS].num_rows
        manifest = replace(
            manifest,
            events=events,
            initial_events=min(manifest.initial_events, events),
            notes=(*manifest.notes, *notes),
        )
        return Recording(without_unknown_ids(conforming), manifest)


def _last_flush(directory: Path) -> LastFlush:
    try:
        return LastFlush.from_json((directory / LAST_FLUSH).read_bytes())
    except FileNotFoundError:
        return LastFlush()
    except ValueError as error:
        raise FormatError(str(directory), LAST_FLUSH, f"damaged ({error})") from None


def _end_note(manifest: "Manifest", flushed: LastFlush) -> str:
    note = "The recording is unfinished: its program was killed, or is still running."
    if not flushed.unix_ns:
        return note + " The time of the last write is unknown."
    seconds = (flushed.unix_ns - manifest.start_unix_ns) / 1e9
    return (
        f"{note} What happened after the last write, {seconds:.1f} s after the start, is missing."
    )


def _check_free(path: Path, directory: Path) -> None:
    if path.exists() or path.is_symlink():
        raise RecordingExistsError(f"{path} exists; remove it or record to another path")
    if directory.exists() or directory.is_symlink():
        raise RecordingExistsError(
            f"{directory} exists: a recording to {path.name} is in progress or was interrupted; "
            f'load it with gpuviz.load("{directory}"), then remove it, or record to another path',
        )
