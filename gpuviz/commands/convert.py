"""``gpuviz convert``: a recording in another format."""

from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz.commands.options import FORMATS
from gpuviz.commands.output import say
from gpuviz.commands.progress import reading, writing
from gpuviz.commands.quantities import parse_range
from gpuviz.errors import GpuvizError
from gpuviz.formats.output_path import check_output

if TYPE_CHECKING:
    from gpuviz.recording import Recording

# Written as folders.
_FOLDERS = {"arrow", "parquet"}


def run(
    file: Path,
    output: Path,
    *,
    format: str | None,  # noqa: A002
    window: str | None,
    force: bool,
) -> None:
    """Convert a recording, or the part in a window such as ``1.5s:2s``, to any writable format.

    Raises:
        GpuvizError: The window is no range, the file cannot be read as a recording, or the output
            cannot be written.
    """
    chosen = format or format_of(output)
    part = None if window is None else parse_range(window)
    check_output(output, force=force, is_folder=chosen in _FOLDERS)
    recording = reading(file)
    if part is not None:
        recording = recording.window(*part)
    with writing(output):
        _write(recording, output, chosen, force=force)
    say(f"Wrote {output}")


def format_of(path: Path) -> str:
    """Return the format of a file name.

    Raises:
        GpuvizError: The suffix is unknown.
    """
    for name, endings in FORMATS.items():
        if path.name.lower().endswith(endings):
            return name
    known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    raise GpuvizError(
        f"{path.name} has no known suffix; use one of {known}, or give --format.",
    )


def _write(recording: "Recording", output: Path, format: str, *, force: bool) -> None:  # noqa: A002
    if format == "gpuviz":
        recording.save(output, overwrite=force)
    elif format == "html":
        recording.report(output, overwrite=force)
    else:
        recording.export(output, format, overwrite=force)
