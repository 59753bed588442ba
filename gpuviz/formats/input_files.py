"""Reading of files that may be anything but files."""

import stat
from pathlib import Path

from gpuviz.errors import FormatError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def check_regular(path: Path) -> None:
    """Check that a path is a file, or a link to one; anything else could block or never end.

    Raises:
        FormatError: It is a FIFO, a device or a socket.
        OSError: It does not exist or cannot be accessed.
    """
    _check_kind(path.stat().st_mode, str(path), "")


def read_member(folder: Path, name: str, most_bytes: int | None = None) -> bytes:
    """Return the content of a file in a folder.

    Raises:
        FormatError: It is no file, larger than ``most_bytes``, or a link to a place outside the
            folder.
        OSError: It does not exist or cannot be read.
    """
    path = folder / name
    if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
        raise FormatError(str(folder), name, f"a link out of the folder, to {path.readlink()}")
    # Before it is opened: opening a FIFO would wait for a writer.
    status = path.stat()
    _check_kind(status.st_mode, str(folder), name)
    if most_bytes is not None and status.st_size > most_bytes:
        problem = f"damaged ({status.st_size} bytes, expected at most {most_bytes})"
        raise FormatError(str(folder), name, problem)
    return path.read_bytes()


def _check_kind(mode: int, path: str, member: str) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no file")
        raise FormatError(path, member, f"{kind}; expected a file")
