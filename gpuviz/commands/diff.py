"""``gpuviz diff``: what changed from one recording to another."""

import sys
from pathlib import Path
from typing import NoReturn

from gpuviz.commands.output import say
from gpuviz.commands.progress import reading, writing
from gpuviz.comparison.followed import followed_text
from gpuviz.comparison.limits import exceeded, parse_limits
from gpuviz.comparison.text import diff_text
from gpuviz.conclusions.ranking import conclusions
from gpuviz.errors import GpuvizError
from gpuviz.formats.output_path import check_output
from gpuviz.quantities import format_counted
from gpuviz.recording import Recording
from gpuviz.recording_diff import Diff

_EXCEEDED = 1
_UNUSABLE = 2


def run(  # noqa: PLR0913 - the options of the command
    before: Path,
    after: Path,
    *,
    output: Path | None,
    force: bool,
    fail_on: str | None,
    finding: int | None,
) -> None:
    """Print the differences of two recordings, or write them as a page, and judge the limits.

    With the number of a finding about the first, print only if its saving came true.

    The exit code is 1 if a limit is exceeded, 2 if the input cannot be used.
    """
    try:
        limits = [] if fail_on is None else parse_limits(fail_on)
        if output is not None:
            check_output(output, force=force)
        if output is not None and finding is not None:
            _fail("a page shows all differences: --finding and --output exclude each other")
        recordings = reading(before), reading(after)
        found = Diff(*recordings)
        if finding is not None:
            say("\n".join([*found.notes, _followed(*recordings, before, finding)]))
        elif output is None:
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


def _followed(before: Recording, after: Recording, file: Path, number: int) -> str:
    listed = conclusions(before)
    if number > len(listed):
        _fail(f"{file} has {format_counted(len(listed), 'finding')}, so none is number {number}")
    finding = listed[number - 1]
    if finding.kind not in {"hazard", "finding"}:
        _fail(f"finding {number} of {file} asks for no change, so it predicts no saving")
    return followed_text(before, after, finding, after.findings(small=True))


def _fail(sentence: str) -> NoReturn:
    say(f"gpuviz: {sentence}", err=True)
    sys.exit(_UNUSABLE)
