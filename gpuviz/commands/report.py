"""``gpuviz report``: a recording as a page."""

from typing import TYPE_CHECKING

import click

from gpuviz.commands.output import check_free
from gpuviz.recording import load

if TYPE_CHECKING:
    from pathlib import Path


def run(file: "Path", *, output: "Path", force: bool) -> None:
    """Write the report of a recording.

    Raises:
        GpuvizError: The file cannot be read as a recording, or the output cannot be written.
    """
    check_free(output, force=force)
    load(file).report(output, overwrite=force)
    click.echo(f"Wrote {output}")
