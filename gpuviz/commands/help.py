"""Commands whose help and usage rich_click draws; it is imported only where they are drawn."""

import sys
from typing import TYPE_CHECKING, Any

__all__ = ["SETTINGS", "Command", "Group", "click"]

_STYLE = {
    "text_paragraph_linebreaks": "\n\n",
    "padding_helptext_first_line": (0, 0, 1, 0),
    "style_options_panel_border": "dim",
    "style_commands_panel_border": "dim",
}
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}

if TYPE_CHECKING or len(sys.argv) == 1 or not {"-h", "--help"}.isdisjoint(sys.argv):
    import rich_click as click
    from rich_click import RichCommand as Command
    from rich_click import RichGroup as Group

    SETTINGS["rich_help_config"] = _STYLE
else:
    import click

    class _Context(click.Context):
        """What draws the usage that stands above the error in it."""

        def get_usage(self) -> str:
            from rich_click import RichContext

            formatter = RichContext(self.command, rich_help_config=_STYLE).make_formatter()
            pieces = self.command.collect_usage_pieces(self)
            formatter.write_usage(self.command_path, " ".join(pieces))
            return formatter.getvalue().rstrip("\n")

    class Command(click.Command):
        """A command that starts sooner than one of rich_click's."""

        context_class = _Context

    class Group(click.Group):
        """A group of such commands."""

        context_class = _Context
        command_class = Command
