"""The output of all commands: the one place where they print."""

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from gpuviz.terminal import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment


def say(text: str, *, err: bool = False) -> None:
    """Print a text with a line end, on stderr if ``err``."""
    click.echo(printable(text), err=err)


def say_json(value: Any) -> None:
    """Print a value as JSON."""
    # ASCII, of which JSON escapes all control characters but this one.
    click.echo(json.dumps(value, indent=1).replace("\x7f", "\\u007f"))


def console(**options: Any) -> "Console":
    """Return a console of rich for texts with styles, with these options."""
    from rich.console import Console
    from rich.segment import Segment

    class PrintableConsole(Console):
        def render(
            self, renderable: "RenderableType", options: "ConsoleOptions | None" = None
        ) -> "Iterable[Segment]":
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable(text), style, control)

    return PrintableConsole(**options)


def show_error(error: click.ClickException, *, err: bool) -> None:
    """Print the usage and the message of an error of the command line."""
    message = printable(error.format_message())
    error.format_message = lambda: message  # type: ignore[method-assign]
    error.show(None if err else sys.stdout)
