"""Atomic writing of folders."""

import os
import shutil
from typing import TYPE_CHECKING

from gpuviz.errors import RecordingExistsError
from gpuviz.formats.output_path import check_free, created_meanwhile
from gpuviz.formats.whole_file import KEPT, naming

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def write_whole_folder(
    path: "Path",
    write: "Callable[[Path], None]",
    *,
    overwrite: bool,
    is_replaceable: "Callable[[Path], bool]",
) -> "Path":
    """Write a folder under a temporary name beside ``path``, rename it, and return its path.

    If ``write`` raises an exception, the temporary folder is removed and an existing folder is
    kept.

    Args:
        path: The path of the folder.
        write: Writes the content into an empty folder.
        overwrite: Whether to replace an existing folder.
        is_replaceable: Whether an existing folder may be removed with its content.

    Raises:
        RecordingExistsError: ``path`` exists and may not be replaced.
        OSError: The folder cannot be written.
    """
    check_free(path, overwrite=overwrite)
    _check_replaceable(path, is_replaceable)
    name = f".{path.name[:KEPT]}.{os.urandom(8).hex()}"
    unfinished, replaced = path.with_name(f"{name}.tmp"), path.with_name(f"{name}.old")
    with naming(path):
        unfinished.mkdir()
        try:
            write(unfinished)
            if overwrite and os.path.lexists(path):
                path.rename(replaced)
            _move(unfinished, path, replaced)
        finally:
            _remove(unfinished)
            _remove(replaced)
    return path


def _check_replaceable(path: "Path", is_replaceable: "Callable[[Path], bool]") -> None:
    is_folder = path.is_dir() and not path.is_symlink()
    if is_folder and any(path.iterdir()) and not is_replaceable(path):
        raise RecordingExistsError(
            f"{path} is a folder with files that gpuviz did not export; it is not overwritten, "
            "choose another name",
        )


def _move(unfinished: "Path", path: "Path", replaced: "Path") -> None:
    """Rename the folder to ``path``; if that fails, restore the replaced folder."""
    try:
        unfinished.rename(path)
    except OSError as error:
        if replaced.exists():
            replaced.rename(path)
        elif path.exists():
            raise created_meanwhile(path) from error
        raise


def _remove(path: "Path") -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
