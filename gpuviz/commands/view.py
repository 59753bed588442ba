"""``gpuviz view``: a recording in a browser."""

import tempfile
from pathlib import Path

from gpuviz.commands.browser import open_page
from gpuviz.commands.output import say
from gpuviz.commands.progress import reading, writing
from gpuviz.formats.detection import detect


def run(file: Path) -> None:
    """Open the report of a recording; a report is opened directly.

    Raises:
        GpuvizError: The file cannot be read as a recording.
    """
    if detect(file) == "html":
        open_page(file)
        return
    recording = reading(file)
    path = Path(tempfile.mkdtemp(prefix="gpuviz-view-"), f"{file.stem}.html")
    with writing(path):
        recording.report(path)
    say(f"Wrote {path}")
    open_page(path)
