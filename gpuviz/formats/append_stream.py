"""An Arrow IPC stream that grows on disk in whole messages."""

import errno
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import finalize

import pyarrow as pa

from gpuviz.errors import FormatError
from gpuviz.formats.stream_messages import Beginning, beginning_of, rows_of


@dataclass(frozen=True, slots=True)
class _State:
    """What is in the file, and the batches that are not, changed together by one assignment."""

    rows: int = 0
    length: int = 0
    checksum: int = 0
    beginning: Beginning | None = None
    pending: list[pa.RecordBatch] = field(default_factory=list)


class AppendStream:
    """Writes record batches to the end of one file.

    A step that is interrupted or fails can be repeated: no batch is lost, and none is written
    twice. The file stays open, so that its batches can be read even after it has been removed.

    Args:
        path: The file; it must not exist. It is created by the first flush.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state = _State()
        self._descriptor = -1
        self._close: finalize[Any, Any] | None = None

    @property
    def rows(self) -> int:
        """Rows in the file."""
        return self._state.rows

    @property
    def length(self) -> int:
        """Bytes of these rows, from the start of the file."""
        return self._state.length

    @property
    def checksum(self) -> int:
        """The CRC-32 of these bytes."""
        return self._state.checksum

    @property
    def all_rows(self) -> int:
        """Rows in the file, and rows that are not in it yet."""
        rows: int = sum(batch.num_rows for batch in self._state.pending)
        return self._state.rows + rows

    def append(self, batch: pa.RecordBatch) -> None:
        """Add a batch; all batches of a stream have the same schema."""
        self._state.pending.append(batch)

    def flush(self) -> None:
        """Write the pending batches to the file.

        Raises:
            OSError: The write failed, or the file was removed; it ends with the last complete
                flush.
        """
        state = self._state
        if not state.pending:
            return
        content, beginning = _messages(state.pending, state.beginning)
        if self._close is None:
            self._open()
        _write_all(self._descriptor, content, state.length)
        self._state = _State(
            self.all_rows,
            state.length + len(content),
            zlib.crc32(content, state.checksum),
            beginning,
        )

    def written(self) -> pa.Table | None:
        """Return the batches in the file; None if there are none.

        Raises:
            OSError: The file cannot be read.
        """
        if self.length == 0:
            return None
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            return read_torn(file.read(self.length)).table

    def unwritten(self) -> pa.Table | None:
        """Return the batches that are not in the file yet; None if there are none."""
        pending = self._state.pending
        return pa.Table.from_batches(pending) if pending else None

    def close(self) -> None:
        """Close the file, and discard the batches that are not in it."""
        self._state = _State()
        if self._close is not None:
            self._close()

    def _open(self) -> None:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self._close = finalize(self, os.close, self._descriptor)
        self._close.atexit = False  # a recording may end later


@dataclass(frozen=True, slots=True)
class TornStream:
    """The readable part of a stream that may end in the middle of a message."""

    table: pa.Table | None
    lost_bytes: int


def read_torn(
    content: bytes,
    check: Callable[[bytes], tuple[memoryview, pa.ipc.IpcReadOptions]] | None = None,
) -> TornStream:
    """Return the complete batches of a stream; no table if even its schema is incomplete.

    Args:
        content: The stream.
        check: Returns the part of it that may be read; for streams of unknown origin.

    Raises:
        ValueError: A complete batch has values out of range.
    """
    batches: list[pa.RecordBatch] = []
    try:
        readable, options = (content, None) if check is None else check(content)
        source = pa.BufferReader(pa.py_buffer(readable))
        reader = pa.ipc.open_stream(source, options=options)
    except (MemoryError, FormatError):
        raise
    except (pa.ArrowException, OSError, ValueError):
        return TornStream(None, len(content))
    end = source.tell()
    while True:
        try:
            batches.append(reader.read_next_batch())
        except StopIteration:
            end = len(readable)
            break
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, ValueError):
            break
        end = source.tell()
    table = pa.Table.from_batches(batches, reader.schema)
    table.validate(full=True)
    return TornStream(table.unify_dictionaries(), len(content) - end)


def _messages(
    batches: Sequence[pa.RecordBatch], beginning: Beginning | None
) -> tuple[bytes, Beginning | None]:
    """Return messages that continue a stream, and the dictionaries that are known after them."""
    pieces = []
    for batch in batches:
        if beginning is None:
            beginning = beginning_of(batch)
            pieces.append(beginning.messages)
        elif not beginning.holds(batch):
            beginning = beginning_of(batch)
            pieces.append(beginning.dictionaries)
        pieces.append(rows_of(batch))
    return b"".join(pieces), beginning


def _write_all(descriptor: int, content: bytes, length: int) -> None:
    """Write to a file from a length on, so that a second try replaces what the first has left."""
    if os.fstat(descriptor).st_nlink == 0:
        raise FileNotFoundError(errno.ENOENT, "it was removed while recording")
    remaining = memoryview(content)
    os.lseek(descriptor, length, os.SEEK_SET)
    try:
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
    except OSError:
        os.ftruncate(descriptor, length)
        raise
