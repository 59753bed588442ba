"""``gpuviz report``: the HTML report of a recording."""

from pathlib import Path
from typing import Any

from gpuviz.commands.browser import open_page
from gpuviz.commands.output import say
from gpuviz.commands.progress import reading, writing
from gpuviz.commands.quantities import parse_range, parse_size
from gpuviz.errors import GpuvizError
from gpuviz.formats.detection import detect
from gpuviz.formats.output_path import check_output


def run(  # noqa: PLR0913 - a value for each option
    file: Path,
    *,
    output: Path | None,
    force: bool,
    redact: bool,
    window: str | None,
    max_size: str | None,
    open_browser: bool,
) -> None:
    """Write the report of a recording.

    Raises:
        GpuvizError: The file cannot be read as a recording, an option is no time range or size, or
            the output cannot be written.
    """
    chosen: dict[str, Any] = {
        "redact": redact,
        "window": None if window is None else parse_range(window),
        "max_size": None if max_size is None else parse_size(max_size),
    }
    # A file that is no recording must not be reported as one whose report exists.
    detect(file)
    output = output or Path(f"{file.stem}.html")
    check_output(output, force=force)
    recording = reading(file)
    asked = {name: value for name, value in chosen.items() if value}
    try:
        with writing(output):
            recording.report(output, overwrite=force, **asked)
    except ValueError as error:
        if isinstance(error, GpuvizError):
            raise
        raise GpuvizError(str(error)) from None
    say(f"Wrote {output}")
    if open_browser:
        open_page(output)
