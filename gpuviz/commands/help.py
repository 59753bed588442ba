"""Commands whose help and usage rich_click renders; it is imported only when needed."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich_click import RichCommand, RichContext

_STYLE = {
    "text_paragraph_linebreaks": "\n\n",
    "padding_helptext_first_line": (0, 0, 1, 0),
    "style_options_panel_border": "dim",
    "style_commands_panel_border": "dim",
}
_GROUPS = (
    ("Record and look", ("run", "view", "report", "viewer", "demo")),
    ("Conclude", ("findings", "hazards", "leaks", "peak", "what-if", "diff", "prove")),
    ("Files and machine", ("info", "stats", "convert", "merge", "doctor")),
)
_PANELS = [{"name": name, "commands": list(verbs)} for name, verbs in _GROUPS]
_SAME = (
    "name",
    "params",
    "help",
    "epilog",
    "short_help",
    "options_metavar",
    "add_help_option",
    "hidden",
    "deprecated",
)


class Command(click.Command):
    """A command that starts faster than rich_click's."""

    def get_usage(self, ctx: click.Context) -> str:
        """Return the usage line shown above an error."""
        formatter = _drawing(ctx).make_formatter()
        formatter.write_usage(ctx.command_path, " ".join(self.collect_usage_pieces(ctx)))
        return formatter.getvalue().rstrip("\n")

    def get_help(self, ctx: click.Context) -> str:
        """Return the help, which fits on one screen."""
        drawing = _drawing(ctx)
        return drawing.command.get_help(drawing)


class Group(Command, click.Group):
    """A group of such commands."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names."""
        first = args[0]
        if first not in self.commands and Path(first).exists():
            verb = "run" if Path(first).suffix == ".py" else "view"
            ctx.fail(f"No such command '{first}'. Did you mean 'gpuviz {verb} {first}'?")
        return super().resolve_command(ctx, args)


def _drawing(ctx: click.Context) -> "RichContext":
    """Return the same context with rich_click's command."""
    from rich_click import RichContext

    return RichContext(
        _drawn(ctx.command),
        info_name=ctx.command_path,
        help_option_names=ctx.help_option_names,
        rich_help_config=_STYLE | {"command_groups": {ctx.command_path: _PANELS}},
    )


def _drawn(command: click.Command) -> "RichCommand":
    from rich_click import RichCommand, RichGroup

    same = {name: getattr(command, name) for name in _SAME}
    if not isinstance(command, click.Group):
        return RichCommand(**same)
    return RichGroup(
        **same,
        commands={name: _drawn(each) for name, each in command.commands.items()},
        subcommand_metavar=command.subcommand_metavar,
    )
