"""The limit of what reading a file may take in memory."""

import os
from contextlib import suppress
from pathlib import Path

from gpuviz.errors import FormatError, RecordingError
from gpuviz.quantities import format_bytes

# In bytes, for files that `gpuviz.load` gets without `max_bytes`.
VARIABLE = "GPUVIZ_LOAD_MAX_BYTES"

# The default: so many times the size on disk, which is 5 to 30 times in practice.
RATIO = 100
SMALLEST = 64 << 20
LARGEST = 16 << 30


class LoadLimit:
    """Bytes that a file or folder may take in memory once it is read.

    Args:
        path: The file or folder.
        max_bytes: The limit; if None, that of the environment variable ``GPUVIZ_LOAD_MAX_BYTES``,
            else 100 times the size on disk, at least 64 MiB, and at most 16 GiB or half of the
            machine's memory.

    Raises:
        FormatError: The file itself is larger.
        OSError: The file does not exist.
        RecordingError: The environment variable is not a positive number.
        TypeError: ``max_bytes`` is neither an int nor None.
        ValueError: ``max_bytes`` is less than 1.
    """

    def __init__(self, path: Path, max_bytes: int | None = None) -> None:
        self._path = path
        size = size_on_disk(path)
        self.max_bytes = _chosen(max_bytes) or _default(size)
        self._left = self.max_bytes
        if size > self.max_bytes:
            self._refuse("", size)

    def take(self, member: str, nbytes: int) -> None:
        """Count the bytes of a part of the file; to be called before they are allocated.

        Raises:
            FormatError: All parts together need more than the limit.
        """
        if nbytes > self._left:
            self._refuse(member, self.max_bytes - self._left + nbytes)
        self._left -= nbytes

    def _refuse(self, member: str, needed: int) -> None:
        problem = (
            f"needs {format_bytes(needed)} of memory or more; the limit for this file is "
            f"{format_bytes(self.max_bytes)}. If you trust the file, raise the limit: "
            f"gpuviz.load(path, max_bytes=...), or {VARIABLE} in the environment"
        )
        raise FormatError(str(self._path), member, problem)


def size_on_disk(path: Path) -> int:
    """Return the bytes of a file, or of the files in a folder.

    Raises:
        OSError: There is no such file.
    """
    if not path.is_dir():
        return path.stat().st_size
    total = 0
    for part in path.iterdir():
        # The recorder may rename a file at any time.
        with suppress(FileNotFoundError):
            total += part.stat().st_size
    return total


def _chosen(max_bytes: int | None) -> int | None:
    if max_bytes is not None:
        if not isinstance(max_bytes, int) or isinstance(max_bytes, bool):
            kind = type(max_bytes).__name__
            raise TypeError(f"max_bytes must be an int or None, got {kind}")
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be at least 1, got {max_bytes}")
        return max_bytes
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise RecordingError(f"{VARIABLE} must be a positive number of bytes, got {text!r}")
    return int(text)


def _default(size: int) -> int:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(max(RATIO * size, SMALLEST), LARGEST, memory // 2)
