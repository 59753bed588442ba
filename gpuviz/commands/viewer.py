"""``gpuviz viewer``: a page that shows the recordings that are dropped on it."""

from pathlib import Path

from gpuviz.commands.output import say
from gpuviz.commands.progress import writing
from gpuviz.formats.output_path import check_output
from gpuviz.report.viewer import write_viewer


def run(output: Path, *, force: bool) -> None:
    """Write the page.

    Raises:
        GpuvizError: The output cannot be written.
    """
    check_output(output, force=force)
    with writing(output):
        write_viewer(output, overwrite=force)
    say(f"Wrote {output}")
