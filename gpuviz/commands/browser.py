"""Opening pages in a browser."""

import webbrowser
from pathlib import Path

import click


def open_page(path: Path) -> None:
    """Open a page, and say so where no browser can be started."""
    if not webbrowser.open(path.absolute().as_uri()):
        click.echo("No browser could be started: open the file in one.")
