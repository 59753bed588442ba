"""Atomic writing of files."""

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from gpuviz.formats.output_path import check_free, created_meanwhile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def write_whole(path: "Path", write: "Callable[[BinaryIO], None]", *, overwrite: bool) -> "Path":
    """Write a file by a temporary name beside it, give it its name, and return its path.

    Whatever ``write`` raises, nothing is left behind and a file that was there stays.

    Args:
        path: Where the file goes.
        write: Writes the content to the file object that it gets.
        overwrite: Whether to replace what is at ``path``.

    Raises:
        RecordingExistsError: Something is at ``path`` and ``overwrite`` is False.
        OSError: The file cannot be written.
    """
    check_free(path, overwrite=overwrite)
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    with naming(path):
        try:
            with unfinished.open("xb") as file:
                write(file)
            if overwrite:
                unfinished.replace(path)
            else:
                _move_to_free_name(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


@contextmanager
def naming(path: "Path") -> "Iterator[None]":
    """Let an error of the system name what is to be written, not its temporary name or nothing."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _move_to_free_name(unfinished: "Path", path: "Path") -> None:
    """Give a file its final name unless something came to be there meanwhile."""
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise created_meanwhile(path) from None
    except OSError:
        _move_without_links(unfinished, path)


def _move_without_links(unfinished: "Path", path: "Path") -> None:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        raise created_meanwhile(path) from None
    try:
        unfinished.replace(path)
    except OSError:
        path.unlink()
        raise
