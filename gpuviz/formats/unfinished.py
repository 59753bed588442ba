"""Files and folders that are written under a temporary name beside their path."""

import fcntl
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

# Characters of the name in that of a temporary file, which must not become too long.
KEPT = 40


def unfinished_beside(path: Path) -> Path:
    """Return a new temporary name for what will be at ``path``."""
    return path.with_name(f".{path.name[:KEPT]}.{os.urandom(8).hex()}.tmp")


def new_file(unfinished: Path) -> BinaryIO:
    """Create a file under a temporary name; others keep away while it is open.

    The caller removes it, whatever happens here: a signal can end this function at any point.
    """
    while True:
        file = unfinished.open("x+b")
        if _is_held(file.fileno()):
            return file
        file.close()


class OpenFolder:
    """An open folder, closed at the latest when nothing refers to it any more, like a file."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        self._descriptor = os.open(path, os.O_RDONLY)

    def fileno(self) -> int:
        """Return the descriptor."""
        if self._descriptor is None:
            raise ValueError("I/O operation on a closed folder")
        return self._descriptor

    def close(self) -> None:
        """Close the folder, if that has not been done."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        """Close the folder that an interrupted writer left open."""
        self.close()


def new_folder(unfinished: Path) -> OpenFolder:
    """Create a folder under a temporary name; others keep away while it is open.

    The caller removes it, as with `new_file`.
    """
    while True:
        unfinished.mkdir()
        with suppress(FileNotFoundError):
            folder = OpenFolder(unfinished)
            if _is_held(folder.fileno()):
                return folder
            folder.close()


def _is_held(descriptor: int) -> bool:
    """Keep `remove_leftovers` away as long as this is open, unless it came first."""
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fstat(descriptor).st_nlink > 0


def remove_leftovers(path: Path) -> None:
    """Remove what writers to ``path`` that were killed or interrupted have left beside it."""
    for left in _beside(path, "tmp"):
        _remove_if_left(left)


def replaced_name(unfinished: Path) -> Path:
    """Return the name for what an unfinished folder replaces, while neither has its final name."""
    return unfinished.with_suffix(".old")


def restore_replaced(path: Path) -> None:
    """Give a folder its name back whose replacement was killed halfway; remove it if that ended."""
    if len(path.name) <= KEPT:
        for replaced in _beside(path, "old"):
            if os.path.lexists(path):
                remove(replaced)
            else:
                replaced.rename(path)


def remove(path: Path) -> None:
    """Remove a file, or a folder with its content, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _beside(path: Path, suffix: str) -> list[Path]:
    name = re.compile(rf"\.{re.escape(path.name[:KEPT])}\.[0-9a-f]{{16}}\.{suffix}")
    try:
        return [other for other in path.parent.iterdir() if name.fullmatch(other.name)]
    except OSError:
        return []


def _remove_if_left(path: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)
        finally:
            os.close(descriptor)
