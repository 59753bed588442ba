"""An Arrow IPC stream that grows on disk in whole messages."""

import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from gpuviz.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable


class AppendStream:
    """Writes record batches to the end of one file.

    Args:
        path: The file; it must not exist. It is created by the first flush.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self._sink = _Sink()
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._pending: list[pa.RecordBatch] = []
        self.length = 0
        self.checksum = 0

    def append(self, batch: "pa.RecordBatch") -> None:
        """Add a batch; all batches of a stream have the same schema."""
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
            self._writer = pa.ipc.new_stream(self._sink, batch.schema, options=options)
        self._writer.write_batch(batch)
        self._pending.append(batch)

    def flush(self) -> None:
        """Write the pending batches to the file.

        Raises:
            OSError: The write failed; the file ends with the last complete flush.
        """
        if not self._pending:
            return
        content = self._sink.content()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _write_all(descriptor, content, self.length)
        finally:
            os.close(descriptor)
        self._sink.clear()
        self.length += len(content)
        self.checksum = zlib.crc32(content, self.checksum)
        self.rows += sum(batch.num_rows for batch in self._pending)
        self._pending.clear()

    def written(self) -> "pa.Table | None":
        """Return the batches in the file; None if there are none.

        Raises:
            OSError: The file cannot be read.
        """
        if self.length == 0:
            return None
        with self.path.open("rb") as file:
            return read_torn(file.read(self.length)).table

    def unwritten(self) -> "pa.Table | None":
        """Return the batches that are not in the file yet; None if there are none."""
        return pa.Table.from_batches(self._pending) if self._pending else None

    def close(self) -> None:
        """Discard the batches that are not in the file yet."""
        if self._writer is not None:
            self._writer.close()
        self._writer = None
        self._sink.clear()
        self._pending.clear()


@dataclass(frozen=True, slots=True)
class TornStream:
    """The readable part of a stream that may end in the middle of a message."""

    table: "pa.Table | None"
    lost_bytes: int


def read_torn(
    content: bytes,
    check: "Callable[[bytes], tuple[memoryview, pa.ipc.IpcReadOptions]] | None" = None,
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


class _Sink:
    """A file object that buffers what Arrow writes."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._position = 0

    def write(self, piece: "pa.Buffer | bytes") -> int:
        self._pieces.append(bytes(piece))
        self._position += len(self._pieces[-1])
        return len(self._pieces[-1])

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Do nothing; Arrow calls it."""

    def close(self) -> None:
        """Do nothing; Arrow calls it."""

    def writable(self) -> bool:
        return True

    def content(self) -> bytes:
        return b"".join(self._pieces)

    def clear(self) -> None:
        self._pieces.clear()


def _write_all(descriptor: int, content: bytes, length: int) -> None:
    remaining = memoryview(content)
    try:
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
    except OSError:
        os.ftruncate(descriptor, length)
        raise
