"""``gpuviz leaks``: lines whose memory grows with the iterations, or with runs of a cell."""

import json
from pathlib import Path

import click

from gpuviz.advice.leaks_text import leaks_text
from gpuviz.commands.progress import reading


def run(file: Path, *, as_json: bool) -> None:
    """Print the growing lines of a recording.

    Raises:
        GpuvizError: The file cannot be read as a recording.
    """
    found = reading(file).leaks()
    click.echo(json.dumps(found.to_pylist(), indent=1) if as_json else leaks_text(found))
