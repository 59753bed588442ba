"""``gpuviz diff``: what changed from one recording to another."""

import sys
from pathlib import Path
from typing import NoReturn

from gpuviz.commands.output import say
from gpuviz.commands.progress import reading, writing
from gpuviz.comparison.limits import exceeded, parse_limits
from gpuviz.comparison.text import diff_text
from gpuviz.errors import GpuvizError
from gpuviz.formats.output_path import check_output
from gpuviz.recording_diff import Diff

_EXCEEDED = 1
_UNUSABLE = 2


def run(
    before: Path, after: Path, *, output: Path | None, force: bool, fail_on: str | None
) -> None:
    """Print the differences of two recordings, or write them as a page, and judge the limits.

    The exit code is 1 if a limit is exceeded, 2 if the input cannot be used.
    """
    try:
        limits = [] if fail_on is None else parse_limits(fail_on)
        if output is not None:
            check_output(output, force=force)
        found = Diff(reading(before), reading(after))
        if output is None:
            say(diff_text(found))
        else:
            with writing(output):
                found.report(output, overwrite=force)
            say(f"Wrote {output}")
        worse = exceeded(found, limits)
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except GpuvizError as error:
        _fail(str(error))
    for sentence in worse:
        say(f"gpuviz: {sentence}", err=True)
    if worse:
        sys.exit(_EXCEEDED)


def _fail(sentence: str) -> NoReturn:
    say(f"gpuviz: {sentence}", err=True)
    sys.exit(_UNUSABLE)
