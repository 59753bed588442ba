"""Checks of output paths."""

import os
from pathlib import Path

from gpuviz.errors import GpuvizError, RecordingError, RecordingExistsError

RECORDING_SUFFIX = ".gpuviz"
PAGE_SUFFIXES = (".html", ".htm")


def part_of(path: Path) -> Path:
    """Return the part folder of a recording to ``path``."""
    return path.with_name(f"{path.name}.part")


def check_free(
    path: Path, *, overwrite: bool, remedy: str = "choose another name or pass overwrite=True"
) -> None:
    """Check that a file may be written to ``path``, before its content is computed.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False; the message ends with
            ``remedy``.
    """
    if not overwrite and os.path.lexists(path):
        raise RecordingExistsError(f"{path} exists; {remedy}")


def created_meanwhile(path: Path) -> RecordingExistsError:
    """Return the error for a path that was free when it was checked."""
    return RecordingExistsError(f"{path} exists; it was created in the meantime")


def check_part_free(path: Path, *, remedy: str) -> None:
    """Check that there is no part folder of a recording to ``path``.

    Raises:
        RecordingExistsError: The part folder exists; the message ends with ``remedy``.
    """
    part = part_of(path)
    if os.path.lexists(part):
        raise RecordingExistsError(
            f"{part} exists: a recording to {path.name} is in progress or was interrupted; {remedy}"
        )


def check_recording_name(path: Path) -> None:
    """Check that a recording to ``path`` would not be taken for its report.

    Raises:
        RecordingError: The suffix is that of a web page.
    """
    if path.suffix.lower() in PAGE_SUFFIXES:
        recording = path.with_suffix(RECORDING_SUFFIX).name
        raise RecordingError(
            f"{path.name} is a name for a report, not for a recording; record to {recording}, and "
            f"`gpuviz report {recording}` writes the report"
        )


def check_report_name(path: Path) -> None:
    """Check that a report to ``path`` would not be taken for a recording.

    Raises:
        RecordingError: The suffix is that of a recording.
    """
    if path.suffix.lower() == RECORDING_SUFFIX:
        page = path.with_suffix(PAGE_SUFFIXES[0]).name
        raise RecordingError(
            f"{path.name} is a name for a recording, not for a report; choose {page}"
        )


def check_output(path: Path, *, force: bool, is_folder: bool = False) -> None:
    """Check that a command can write a file, or a folder, to ``path``.

    Raises:
        GpuvizError: ``path`` exists and ``force`` is False, or its parent folder does not exist.
    """
    if path.is_dir() and not is_folder:
        raise GpuvizError(f"{path} is a folder; give a file name.")
    check_free(path, overwrite=force, remedy="choose another name, or use --force to replace it.")
    if not path.parent.is_dir():
        raise GpuvizError(f"The folder {path.parent} of {path.name} does not exist.")
