"""The ``.gpuviz.part`` directory: a recording that is still growing, or that was cut off."""

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuviz.conformity import conform, without_unknown_stacks
from gpuviz.errors import FormatError, RecordingExistsError, SpoolError
from gpuviz.formats import gpuviz
from gpuviz.formats.append_stream import AppendStream, read_torn
from gpuviz.formats.gpuviz import MANIFEST, TABLE_SUFFIX
from gpuviz.recording import Recording

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuviz.manifest import Manifest

LAST_FLUSH = "last_flush.json"
EVENTS = "memory_events"


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
            self._write_text(MANIFEST, replace(manifest, complete=False).to_json())
        except OSError as error:
            raise SpoolError(f"{self.directory}: cannot be written ({error})") from error

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
            # Dictionaries first: no event on disk may name a stack that is not.
            for name in sorted(self._streams, key=lambda name: name == EVENTS):
                self._streams[name].flush()
            rows = {name: stream.rows for name, stream in self._streams.items()}
            flushed = {"unix_ns": time.time_ns(), "rows": rows}
            self._write_text(LAST_FLUSH, json.dumps(flushed))
        except OSError as error:
            self._keep_in_memory()
            raise SpoolError(
                f"{self.directory}: cannot be written ({error}); recording goes on in memory",
            ) from error

    def tables(self) -> "dict[str, pa.Table]":
        """Return every row appended so far, from disk and from memory."""
        import pyarrow as pa

        if not self._failed:
            self.flush()
        names = dict.fromkeys([*self._streams, *self._in_memory])
        collected = {}
        for name in names:
            parts = list(self._in_memory.get(name, []))
            if name in self._streams and self._streams[name].path.exists():
                parts.insert(0, read_torn(self._streams[name].path).table)
            collected[name] = pa.concat_tables(parts).unify_dictionaries()
        return collected

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
        for name, stream in self._streams.items():
            unwritten = stream.unwritten()
            if unwritten is not None:
                self._in_memory.setdefault(name, []).append(unwritten)

    def _write_text(self, name: str, text: str) -> None:
        unfinished = self.directory / f".{name}.tmp"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(self.directory / name)


def read(directory: Path) -> Recording:
    """Return the recording in a ``.gpuviz.part`` directory; its notes say what is missing.

    Raises:
        FormatError: The directory is not one, or its manifest or a table is damaged.
    """
    manifest_path = directory / MANIFEST
    if not manifest_path.is_file():
        raise FormatError(str(directory), MANIFEST, "missing; expected a .gpuviz.part directory")
    manifest = gpuviz.read_manifest(manifest_path.read_bytes(), str(directory))
    flushed = _last_flush(directory)
    tables, notes = {}, [_end_note(manifest, flushed)]
    for path in sorted(directory.glob("*" + TABLE_SUFFIX)):
        with gpuviz.naming(str(directory), path.name):
            torn = read_torn(path)
        name = path.name.removesuffix(TABLE_SUFFIX)
        promised = flushed.get("rows", {}).get(name, 0)
        if torn.table is None or torn.table.num_rows < promised:
            found = torn.table.num_rows if torn.table is not None else 0
            problem = f"damaged ({found} rows can be read, {promised} were written)"
            raise FormatError(str(directory), path.name, problem)
        if torn.lost_bytes:
            notes.append(
                f"{path.name}: the last {torn.lost_bytes} bytes are half a batch, left out."
            )
        tables[name] = torn.table
    return _recording(directory, tables, replace(manifest, complete=False), notes)


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
        return Recording(without_unknown_stacks(conforming), manifest)


def _last_flush(directory: Path) -> dict[str, Any]:
    try:
        flushed: dict[str, Any] = json.loads((directory / LAST_FLUSH).read_bytes())
        return {"unix_ns": int(flushed["unix_ns"]), "rows": dict(flushed["rows"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _end_note(manifest: "Manifest", flushed: dict[str, Any]) -> str:
    note = "The recording was not finished: its program was killed, or still runs."
    if not flushed:
        return note + " Nothing says when it was last written."
    seconds = (flushed["unix_ns"] - manifest.start_unix_ns) / 1e9
    return (
        f"{note} What happened after the last write, {seconds:.1f} s after the start, is missing."
    )


def _check_free(path: Path, directory: Path) -> None:
    if path.exists() or path.is_symlink():
        raise RecordingExistsError(f"{path} exists; remove it or record to another path")
    if directory.exists() or directory.is_symlink():
        raise RecordingExistsError(
            f"{directory} exists: a recording to {path.name} is running or was cut off; load it "
            f'with gpuviz.load("{directory}"), then remove it, or record to another path',
        )
