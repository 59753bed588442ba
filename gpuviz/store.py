"""Where the batches of a recording go while it is made: a file on disk, or bounded memory."""

from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz import _core
from gpuviz.analysis.preamble import preamble
from gpuviz.analysis.state import memory_columns
from gpuviz.errors import SpoolError
from gpuviz.formats.part import EVENTS, PartWriter
from gpuviz.recording import Recording, load
from gpuviz.tables import schemas

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuviz.manifest import Manifest


class Store:
    """The batches of a recording that is being made. One thread at a time.

    Without a path, and after the disk failed, the newest ``max_events`` events are kept in memory.
    What the dropped ones had left is described by events before the oldest one kept, so that every
    state after it can still be rebuilt.

    Attributes:
        dropped_oldest: Events that were dropped.
        bytes_in_memory: Bytes of the batches in memory.
        failure: Why the disk is no longer written to; None while it is.
    """

    def __init__(self, path: Path | None, manifest: "Manifest", max_events: int) -> None:
        self._part = None if path is None else PartWriter(path, manifest)
        self._max_events = max_events
        self._batches: dict[str, deque[pa.RecordBatch]] = {}
        self._events_in_memory = 0
        self._state_before = _core.MemoryState()
        self.dropped_oldest = 0
        self.bytes_in_memory = 0
        self.failure: str | None = None

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the growing files; 0 without a path."""
        if self._part is None or not self._part.directory.exists():
            return 0
        return sum(file.stat().st_size for file in self._part.directory.iterdir())

    def append(self, table: str, batch: "pa.RecordBatch") -> None:
        """Take the next rows of a table."""
        if self._part is not None and self.failure is None:
            self._part.append(table, batch)
            return
        self._batches.setdefault(table, deque()).append(batch)
        self.bytes_in_memory += batch.nbytes
        if table == EVENTS:
            self._events_in_memory += batch.num_rows
            self._drop_oldest()

    def flush(self) -> None:
        """Let what was appended survive a kill of this process; a failing disk is noted."""
        if self._part is None or self.failure is not None:
            return
        try:
            self._part.flush()
        except SpoolError as error:
            self.failure = str(error)

    def describe(self, manifest: "Manifest") -> None:
        """Keep what is known of the recording by now, for whoever loads an unfinished one."""
        if self._part is not None and self.failure is None:
            self._part.describe(manifest)

    def finish(self, manifest: "Manifest") -> Recording:
        """Return the recording, which is then at its path unless the disk failed."""
        if self._part is not None and self.failure is None:
            try:
                return load(self._part.finish(manifest))
            except SpoolError as error:
                self.failure = f"{error}; the recording is in memory only"
                manifest = replace(manifest, notes=(*manifest.notes, self.failure))
        return self.so_far(manifest)

    def so_far(self, manifest: "Manifest") -> Recording:
        """Return what was recorded until now."""
        spooled = {} if self._part is None else self._part.tables()
        before = self._events_before()
        tables = {
            name: _concatenated(
                [spooled.get(name), before if name == EVENTS else None],
                self._batches.get(name, ()),
                schema,
            )
            for name, schema in schemas().items()
        }
        if before is not None:
            manifest = replace(manifest, initial_events=before.num_rows)
        return Recording(tables, replace(manifest, dropped_oldest=self.dropped_oldest))

    def discard(self) -> None:
        """Leave nothing behind; for a recording that could not begin."""
        if self._part is not None:
            self._part.discard()

    def _drop_oldest(self) -> None:
        import pyarrow as pa

        batches = self._batches[EVENTS]
        while self._events_in_memory > self._max_events and len(batches) > 1:
            oldest = batches.popleft()
            self._events_in_memory -= oldest.num_rows
            self.bytes_in_memory -= oldest.nbytes
            self.dropped_oldest += oldest.num_rows
            self._state_before.apply(memory_columns(pa.Table.from_batches([oldest])))

    def _events_before(self) -> "pa.Table | None":
        if self.dropped_oldest == 0:
            return None
        return preamble(self._state_before)


def _concatenated(
    parts: "list[pa.Table | None]",
    batches: "deque[pa.RecordBatch] | tuple[()]",
    schema: "pa.Schema",
) -> "pa.Table":
    import pyarrow as pa

    known = [part for part in parts if part is not None]
    kept = pa.Table.from_batches(list(batches), schema)
    return pa.concat_tables([*(part.cast(schema) for part in known), kept]).unify_dictionaries()
