"""``gpuviz view``: a recording, or two, in a browser."""

import tempfile
from pathlib import Path

from gpuviz.commands.browser import open_page
from gpuviz.commands.output import say
from gpuviz.commands.progress import reading, writing
from gpuviz.formats.detection import detect
from gpuviz.recording_diff import Diff


def run(file: Path, after: Path | None = None) -> None:
    """Open the report of a recording, or the page of two; a report is opened directly.

    Raises:
        GpuvizError: A file cannot be read as a recording.
    """
    if after is None and detect(file) == "html":
        open_page(file)
        return
    recording = reading(file)
    shown = recording if after is None else Diff(recording, reading(after))
    path = Path(tempfile.mkdtemp(prefix="gpuviz-view-"), f"{file.stem}.html")
    with writing(path):
        shown.report(path)
    say(f"Wrote {path}")
    open_page(path)
