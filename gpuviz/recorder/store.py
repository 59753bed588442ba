"""Storage of a growing recording: a file on disk, or bounded memory."""

import sys
import threading
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from gpuviz.analysis.derived_tables import derived_for_file
from gpuviz.analysis.host_memory import TABLE as HOST_EVENTS
from gpuviz.conclusions.store import for_recorder
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import ACTIVITY_TABLES, Tables, schemas
from gpuviz.data.validation import NonconformingTableError, conform, without_unknown_ids
from gpuviz.errors import RecordingExistsError, SpoolError
from gpuviz.formats import gpuviz
from gpuviz.formats.load_limit import LoadLimit
from gpuviz.formats.part import EVENTS, PartWriter
from gpuviz.recorder.kept_rows import BeforeRows, HostBefore, KeptRows
from gpuviz.recording import Recording


class Store:
    """The batches of a recording in progress; thread-safe.

    Without a path, and after a disk failure, the newest ``max_events`` events and about as many
    rows of each table of activities are kept in memory. Initial events replace the discarded
    events, of devices and of pinned memory, so that every later state can still be reconstructed.

    A call that is interrupted or fails can be repeated, if `rows` shows that the rows to append are
    not in the store yet.

    Attributes:
        dropped_oldest_activities: Number of discarded rows of activities, CUDA calls and pinned
            memory.
        bytes_in_memory: Bytes of the batches in memory.
        failure: Why the recording is not written to disk; None if it is.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False, or ``<path>.part`` exists.
        SpoolError: The folder of ``path`` is missing or cannot be written.
    """

    def __init__(
        self, path: Path | None, manifest: Manifest, max_events: int, *, overwrite: bool = False
    ) -> None:
        if path is not None and not _is_folder(path.parent):
            raise SpoolError(
                f"{path}: the folder {path.parent} does not exist; create it, or record "
                "to another path",
            )
        self._part = None if path is None else PartWriter(path, manifest, overwrite=overwrite)
        self._max_events = max_events
        self._kept: dict[str, KeptRows] = {}
        self._before = {EVENTS: BeforeRows(), HOST_EVENTS: HostBefore()}
        self._finished: Recording | Path | None = None
        self._lock = threading.RLock()
        self.dropped_oldest_activities = 0
        self.bytes_in_memory = 0
        self.failure: str | None = None

    @property
    def dropped_oldest(self) -> int:
        """Number of discarded events."""
        return self._before[EVENTS].rows

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the growing files, or of the finished one; 0 without a path."""
        if self._part is None:
            return 0
        total = 0
        for file in [self._part.path, *self._part.directory.glob("*")]:
            # The writing thread, or another program, may rename or remove a file at any time.
            with suppress(OSError):
                total += file.stat().st_size
        return total

    def append(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows of a table, unless the recording is finished."""
        with self._lock:
            if self._finished is not None:
                return
            if self._part is not None and self.failure is None:
                self._part.append(table, batch)
                return
            if table not in self._kept:
                self._kept[table] = KeptRows(self.rows(table))
            self.bytes_in_memory += batch.get_total_buffer_size()
            self._kept[table].append(batch)
            if table in self._before or table in ACTIVITY_TABLES:
                self._drop_oldest(table)

    def rows(self, table: str) -> int:
        """Return the number of rows of a table that were ever appended."""
        with self._lock:
            if table in self._kept:
                return self._kept[table].end
            return 0 if self._part is None else self._part.rows(table)

    def flush(self) -> None:
        """Write appended rows, so that they survive a kill of this process; note disk failures."""
        with self._lock:
            if self._part is None or self.failure is not None or self._finished is not None:
                return
            try:
                self._part.flush()
            except SpoolError as error:
                self.failure = f"{error}; the recording continues in memory"

    def describe(self, manifest: Manifest) -> None:
        """Write the current manifest, for loading an unfinished recording."""
        with self._lock:
            if self._part is not None and self.failure is None:
                self._part.describe(manifest)

    def finish(self, manifest: Manifest) -> Recording:
        """Write the recording to its path and return it; keep it in memory if that fails."""
        with self._lock:
            recording = self.finished()
            if recording is None:
                self.flush()
                notes = tuple(note for note in manifest.notes if note != self.failure)
                manifest = replace(manifest, notes=notes)
                recording = self._at_path(manifest)
                if recording is None:
                    recording = self._finished = self._in_memory(manifest)
            if self._part is not None:
                self._part.close()
                if self.failure is None:
                    self._part.discard()
            self._kept.clear()
            return recording

    def finished(self) -> Recording | None:
        """Return the finished recording, which is read from its path on first use; else None."""
        with self._lock:
            if isinstance(self._finished, Path):
                # Not with `load`: creating classes while Python exits, as for other formats, would
                # make it forget that an interrupt ended the program.
                self._finished = _own(self._finished)
            return self._finished

    def so_far(self, manifest: Manifest, most_bytes: int | None = None) -> Recording:
        """Return everything recorded so far, or the finished recording.

        Args:
            manifest: The current manifest.
            most_bytes: Tables of activities with more bytes on disk are omitted, with a note.
        """
        with self._lock:
            finished = self.finished()
            if finished is not None:
                return finished
            left_out = self._too_large(most_bytes)
            if left_out:
                note = f"Too long to be read at this moment, and left out: {', '.join(left_out)}."
                manifest = replace(manifest, notes=(*manifest.notes, note))
            return self._in_memory(manifest, left_out)

    def _too_large(self, most_bytes: int | None) -> list[str]:
        if most_bytes is None or self._part is None:
            return []
        return [name for name in ACTIVITY_TABLES if self._part.bytes_on_disk(name) > most_bytes]

    def discard(self) -> None:
        """Remove all files, for a recording that could not start."""
        if self._part is not None:
            self._part.discard()

    def _at_path(self, manifest: Manifest) -> Recording | None:
        """Write the recording to its path, even if the disk failed before."""
        if self._part is None:
            return None
        recording = self._all_rows(manifest)
        try:
            self._part.finish(recording, derived_for_file(recording) | for_recorder(recording))
        except (SpoolError, RecordingExistsError) as error:
            self.failure = str(error)
            return None
        self._finished, self.failure = self._part.path, None
        return recording

    def contents(self, leave_out: Collection[str] = ()) -> tuple[Tables, int | None]:
        """Return all rows so far except tables in ``leave_out``, and a number of leading events.

        These events replace discarded ones; the number is None if none were discarded.
        """
        with self._lock:
            finished = self.finished()
            if finished is not None:
                return finished.tables, finished.manifest.initial_events
            spooled = self._spooled(leave_out)
            before = {name: each.events() for name, each in self._before.items() if each.rows}
            tables = {
                name: _concatenated(
                    [before.get(name), spooled.get(name)],
                    () if name in leave_out or name not in self._kept else self._kept[name],
                    schema,
                )
                for name, schema in schemas().items()
            }
            return tables, before[EVENTS].num_rows if EVENTS in before else None

    def _in_memory(self, manifest: Manifest, leave_out: Collection[str] = ()) -> Recording:
        if self.failure is not None and self.failure not in manifest.notes:
            manifest = replace(manifest, notes=(*manifest.notes, self.failure))
        return self._all_rows(manifest, leave_out)

    def _all_rows(self, manifest: Manifest, leave_out: Collection[str] = ()) -> Recording:
        tables, initial_events = self.contents(leave_out)
        if initial_events is not None:
            manifest = replace(manifest, initial_events=initial_events)
        kept = replace(
            manifest,
            events=tables[EVENTS].num_rows,
            dropped_oldest=self.dropped_oldest,
            dropped_oldest_activities=self.dropped_oldest_activities,
        )
        try:
            return Recording(tables, kept)
        except NonconformingTableError:
            # Rows that others refer to were lost, which is counted.
            return Recording(without_unknown_ids(conform(tables)), kept)

    def _spooled(self, leave_out: Collection[str] = ()) -> dict[str, pa.Table]:
        if self._part is None:
            return {}
        tables = self._part.tables(leave_out)
        for name, before in self._before.items():
            if before.rows:
                tables.pop(name, None)
        return tables

    def _drop_oldest(self, table: str) -> None:
        kept = self._kept[table]
        while kept.rows > self._max_events and len(kept) > 1:
            self._drop(table, kept)

    def _drop(self, table: str, kept: KeptRows) -> None:
        batch, end = kept.oldest
        before = self._before.get(table)
        dropped = batch.num_rows
        if before is not None:
            already = before.rows
            if already == 0:
                # Events on disk are older than those in memory, so they are discarded first.
                for spooled in self._spooled().get(table, _no_rows(table)).to_batches():
                    before.add(spooled)
            if before.rows < end:
                before.add(batch)
            dropped = before.rows - already
        kept.drop_oldest()
        self.bytes_in_memory -= batch.get_total_buffer_size()
        if table != EVENTS:
            self.dropped_oldest_activities += dropped


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        raise SpoolError(f"{path}: {error.strerror}") from error


def _own(path: Path) -> Recording:
    """Return the recording that was just written, however much memory it takes."""
    return Recording.of(gpuviz.read(path, limit=LoadLimit(path, sys.maxsize)))


def _no_rows(table: str) -> pa.Table:
    return schemas()[table].empty_table()


def _concatenated(
    parts: list[pa.Table | None],
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
) -> pa.Table:
    known = [part for part in parts if part is not None]
    # Of one chunk, so that no analysis has to join its columns again.
    kept = pa.Table.from_batches(list(batches), schema).unify_dictionaries().combine_chunks()
    # `cast` would import pyarrow.compute, also for equal types.
    alike = (part if part.schema.equals(schema) else part.cast(schema) for part in known)
    return pa.concat_tables([*alike, kept]).unify_dictionaries()
