"""Deflate on several threads."""

import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    import zipfile

LEVEL = 4
# Larger pieces compress slightly better; smaller ones keep all threads busy with less memory.
PIECE_BYTES = 1 << 20
_MOST_THREADS = 8

P = ParamSpec("P")
R = TypeVar("R")
Buffers = list[bytes | bytearray | memoryview]


class ParallelDeflate:
    """Replaces a ``zlib.compressobj`` of raw deflate, and compresses pieces on several threads.

    Pieces do not refer to each other; together they form one stream.
    """

    def __init__(self, threads: "Threads", workers: int) -> None:
        self._threads = threads
        self._most_waiting = 2 * workers
        self._buffers: Buffers = []
        self._bytes = 0
        self._waiting: deque[Future[bytes]] = deque()

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        """Add bytes, which must not change afterwards; return the output available so far."""
        self._buffers.append(data)
        self._bytes += len(data)
        if self._bytes < PIECE_BYTES:
            return b""
        self._submit(zlib.Z_FULL_FLUSH)
        return self._ready(self._most_waiting)

    def flush(self) -> bytes:
        """End the stream and return the rest of the output."""
        self._submit(zlib.Z_FINISH)
        return self._ready(0)

    def _submit(self, ending: int) -> None:
        piece, self._buffers, self._bytes = self._buffers, [], 0
        self._waiting.append(self._threads.submit(_deflated, piece, ending))

    def _ready(self, most_waiting: int) -> bytes:
        pieces = []
        while len(self._waiting) > most_waiting:
            pieces.append(self._waiting.popleft().result())
        return b"".join(pieces)


class Threads:
    """A thread pool; while the interpreter exits, the calling thread does the work."""

    def __init__(self, workers: int, name: str) -> None:
        self._pool: ThreadPoolExecutor | None = None
        # While the interpreter exits, even the import fails.
        with suppress(RuntimeError):
            from concurrent import futures

            self._pool = futures.ThreadPoolExecutor(workers, name)

    def submit(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Call a function on a thread."""
        with suppress(RuntimeError):
            if self._pool is not None:
                return self._pool.submit(work, *args, **kwargs)
        done: Future[R] = Future()
        done.set_result(work(*args, **kwargs))
        return done

    def close(self) -> None:
        """Wait for all submitted calls, and end the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def _deflated(piece: Buffers, ending: int) -> bytes:
    deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b"".join([*map(deflate.compress, piece), deflate.flush(ending)])


class Members:
    """Writes the members of a ZIP archive, compressed on several threads."""

    def __init__(self, archive: "zipfile.ZipFile") -> None:
        self._archive = archive
        self._workers = min(len(os.sched_getaffinity(0)), _MOST_THREADS)
        self._threads = Threads(self._workers, "gpuviz-deflate")

    @contextmanager
    def open(self, entry: "zipfile.ZipInfo") -> Iterator[IO[bytes]]:
        """Open a member for writing."""
        with self._archive.open(entry, "w", force_zip64=True) as member:
            # If a version of Python renames this attribute, its own compressor is used.
            member._compressor = ParallelDeflate(self._threads, self._workers)  # type: ignore[attr-defined]  # noqa: SLF001
            yield member

    def close(self) -> None:
        """End the threads."""
        self._threads.close()
