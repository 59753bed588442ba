"""Atomic writing of folders."""

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path

from gpuviz.errors import RecordingExistsError
from gpuviz.formats.output_path import check_free, created_meanwhile
from gpuviz.formats.unfinished import (
    new_folder,
    remove,
    remove_leftovers,
    replaced_name,
    restore_replaced,
    unfinished_beside,
)
from gpuviz.formats.whole_file import naming

# Of Linux: the directory that relative paths start from, and the flag of renameat2().
_WORKING_DIRECTORY = -100
_EXCHANGE = 2


def write_whole_folder(
    path: Path,
    write: Callable[[Path], None],
    *,
    overwrite: bool,
    is_replaceable: Callable[[Path], bool],
) -> Path:
    """Write a folder under a temporary name beside ``path``, rename it, and return its path.

    If ``write`` raises an exception, the temporary folder is removed and an existing folder is
    kept. Whenever it is interrupted, ``path`` has either the old or the new folder.

    Args:
        path: The path of the folder.
        write: Writes the content into an empty folder.
        overwrite: Whether to replace an existing folder.
        is_replaceable: Whether an existing folder may be removed with its content.

    Raises:
        RecordingExistsError: ``path`` exists and may not be replaced.
        OSError: The folder cannot be written.
    """
    restore_replaced(path)
    check_free(path, overwrite=overwrite)
    _check_replaceable(path, is_replaceable)
    remove_leftovers(path)
    with naming(path):
        unfinished = unfinished_beside(path)
        try:
            held = new_folder(unfinished)
            try:
                write(unfinished)
                if overwrite and os.path.lexists(path):
                    _replace(unfinished, path)
                else:
                    _move(unfinished, path)
            finally:
                held.close()
        finally:
            remove(unfinished)
    return path


def _check_replaceable(path: Path, is_replaceable: Callable[[Path], bool]) -> None:
    is_folder = path.is_dir() and not path.is_symlink()
    if is_folder and any(path.iterdir()) and not is_replaceable(path):
        raise RecordingExistsError(
            f"{path} is a folder with files that gpuviz did not export; it is not overwritten, "
            "choose another name",
        )


def _move(unfinished: Path, path: Path) -> None:
    try:
        unfinished.rename(path)
    except OSError as error:
        if path.exists():
            raise created_meanwhile(path) from error
        raise


def _replace(unfinished: Path, path: Path) -> None:
    """Give the new folder its name, and the replaced one, if it is kept, the temporary name."""
    if _exchange(unfinished, path):
        return
    replaced = replaced_name(unfinished)
    try:
        path.rename(replaced)
        unfinished.rename(path)
    finally:
        if not os.path.lexists(path):
            replaced.rename(path)
        remove(replaced)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; return False where that is not possible."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    names = (_WORKING_DIRECTORY, os.fsencode(one), _WORKING_DIRECTORY, os.fsencode(other))
    if renameat2(*names, _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}:
        return False
    raise OSError(code, os.strerror(code))
