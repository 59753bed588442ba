"""Atomic writing of files."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gpuviz.formats.output_path import check_free, created_meanwhile
from gpuviz.formats.unfinished import new_file, remove_leftovers, unfinished_beside


def write_whole(path: Path, write: Callable[[BinaryIO], None], *, overwrite: bool) -> Path:
    """Write a file under a temporary name in the same folder, rename it, and return its path.

    If ``write`` raises an exception, the temporary file is removed and an existing file is kept. A
    file that a killed writer has left is removed by the next one.

    Args:
        path: The path of the file.
        write: Writes the content to a file object, which it can also read.
        overwrite: Whether to replace an existing file.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The file cannot be written.
    """
    check_free(path, overwrite=overwrite)
    remove_leftovers(path)
    with naming(path):
        unfinished = unfinished_beside(path)
        try:
            with new_file(unfinished) as file:
                write(file)
                file.flush()
                if overwrite:
                    unfinished.replace(path)
                else:
                    _move_to_free_name(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the operating system name ``path`` instead of the temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _move_to_free_name(unfinished: Path, path: Path) -> None:
    """Rename a file, unless its final name has been created in the meantime."""
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise created_meanwhile(path) from None
    except OSError:
        _move_without_links(unfinished, path)


def _move_without_links(unfinished: Path, path: Path) -> None:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        raise created_meanwhile(path) from None
    try:
        unfinished.replace(path)
    except OSError:
        path.unlink()
        raise
