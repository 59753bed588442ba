"""Opening pages in a browser."""

from pathlib import Path

from gpuviz.commands.output import say


def open_page(path: Path) -> None:
    """Open a page in a browser, or print that none can be started."""
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        say("No browser could be started: open the file in one.")
