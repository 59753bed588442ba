"""Checks of output paths."""

from pathlib import Path

from gpuviz.errors import GpuvizError


def check_free(path: Path, *, force: bool, is_folder: bool = False) -> None:
    """Do nothing if a file, or a folder, can be written there.

    Raises:
        GpuvizError: It exists and is not to be replaced, or its folder does not exist.
    """
    if path.is_dir() and not is_folder:
        raise GpuvizError(f"{path} is a folder; give the name of a file to write.")
    if path.exists() and not force:
        raise GpuvizError(f"{path} exists; give another name, or --force to replace it.")
    if not path.parent.is_dir():
        raise GpuvizError(f"The folder {path.parent} of {path.name} does not exist.")
