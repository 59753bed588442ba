"""`diff`: what changed from one recording to another."""

import os
from pathlib import Path

from gpuviz.comparison.diff import Differences
from gpuviz.recording import Recording, load
from gpuviz.report.diff import diff_html, write_diff

Source = Recording | str | os.PathLike[str]


def diff(before: Source, after: Source) -> "Diff":
    """Return what changed from one recording to another.

    Args:
        before: A recording, or the path of a file that `gpuviz.load` reads.
        after: Likewise.

    Raises:
        FileNotFoundError: A file does not exist.
        FormatError: A file cannot be read as a recording.
    """
    return Diff(*(each if isinstance(each, Recording) else load(each) for each in (before, after)))


class Diff(Differences):
    """What changed from one recording to another, which can be shown as a page."""

    before: Recording
    after: Recording

    def _repr_html_(self) -> str:
        return str(diff_html(self))

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the differences as one HTML file that opens offline, and return its path.

        Raises:
            RecordingExistsError: ``path`` exists and ``overwrite`` is False.
            OSError: The file cannot be written.
        """
        return write_diff(self, path, overwrite=overwrite)
