"""Checks of output paths."""

from pathlib import Path

from gpuviz.errors import GpuvizError


def check_free(path: Path, *, force: bool, is_folder: bool = False) -> None:
    """Check that a file, or a folder, can be written to ``path``.

    Raises:
        GpuvizError: It exists and ``force`` is False, or its parent folder does not exist.
    """
    if path.is_dir() and not is_folder:
        raise GpuvizError(f"{path} is a folder; give a file name.")
    if path.exists() and not force:
        raise GpuvizError(f"{path} exists; choose another name, or use --force to replace it.")
    if not path.parent.is_dir():
        raise GpuvizError(f"The folder {path.parent} of {path.name} does not exist.")
