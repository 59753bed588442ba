"""``gpuviz report``: the HTML report of a recording."""

from pathlib import Path
from typing import Any

from gpuviz.commands.browser import open_page
from gpuviz.commands.output import say
from gpuviz.commands.progress import reading, writing
from gpuviz.errors import GpuvizError
from gpuviz.formats.output_path import check_output
from gpuviz.quantities import parse_bytes, parse_quantity

_UNITS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}


def run(  # noqa: PLR0913 - a value for each option
    file: Path,
    *,
    output: Path | None,
    force: bool,
    redact: bool,
    window: tuple[int, int] | None,
    max_size: int | None,
    open_browser: bool,
) -> None:
    """Write the report of a recording.

    Raises:
        GpuvizError: The file cannot be read as a recording, or the output cannot be written.
    """
    # At import, `gpuviz run` would load pyarrow for a function about sizes of this module.
    from gpuviz.formats.detection import detect

    # A file that is no recording must not be reported as one whose report exists.
    detect(file)
    output = output or Path(f"{file.stem}.html")
    check_output(output, force=force)
    recording = reading(file)
    chosen: dict[str, Any] = {"redact": redact, "window": window, "max_size": max_size}
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


def parse_range(text: str) -> tuple[int, int]:
    """Return a range such as ``1.5s:200ms`` in ns; a number without a unit is in seconds.

    Raises:
        GpuvizError: It is not a range, or ends before it starts.
    """
    start, colon, end = text.partition(":")
    bounds = (parse_quantity(start, _UNITS_NS, "s"), parse_quantity(end, _UNITS_NS, "s"))
    if not colon or bounds[0] is None or bounds[1] is None:
        raise GpuvizError(
            f"--range {text} is not START:END: two times since the start of the recording, in "
            "seconds or with a unit, as in 1.5:2 or 350ms:0.4s.",
        )
    if bounds[0] >= bounds[1]:
        raise GpuvizError(f"--range {text} ends before it starts.")
    return bounds[0], bounds[1]


def parse_size(text: str, option: str = "--max-size") -> int:
    """Return a size such as ``20MB`` or ``1.5GiB`` in bytes; a number without a unit is in bytes.

    Raises:
        GpuvizError: It is not a size of at least one byte.
    """
    size = parse_bytes(text)
    if not size:
        raise GpuvizError(f"{option} {text} is not a size, as in 5000000, 20MB or 1.5GiB.")
    return size
