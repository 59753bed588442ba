"""Options shared by several commands, and where a program's arguments begin."""

import inspect
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gpuviz.commands.help import Command
from gpuviz.exports import writers
from gpuviz.formats.output_path import PAGE_SUFFIXES, RECORDING_SUFFIX

# Readers and writers check files; their errors are more precise than click's.
FILE = click.Path(path_type=Path)

_Function = Callable[..., Any]
_RECORDING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--observe", {"help": "Keep the program's own allocator, and record what it does."}),
    ("--no-stacks", {"help": "Do not record call stacks."}),
    ("--no-streams", {"help": "Record memory only."}),
    ("--no-launch-sites", {"help": "Do not record which call caused each GPU activity."}),
    ("--no-launch-blocks", {"help": "Do not record which blocks each launch received."}),
    ("--no-host-samples", {"help": "Do not sample what threads do between their CUDA calls."}),
    ("--api-calls", {"help": "Record every CUDA driver call."}),
    ("--no-graph-nodes", {"help": "Show each launch of a CUDA graph as a whole."}),
)
DEFAULT_MAX_EVENTS = 10_000_000
# Formats to convert to, with their suffixes.
FORMATS = {"gpuviz": (RECORDING_SUFFIX,), "html": PAGE_SUFFIXES} | {
    name: endings for name, (_, _, endings) in writers.FORMATS.items()
}


def recording_options(function: _Function) -> _Function:
    """Add the options of `gpuviz.record` to a command."""
    for name, settings in reversed(_RECORDING):
        function = click.option(name, is_flag=True, **settings)(function)
    return click.option(
        "--max-events",
        type=click.IntRange(min=1),
        default=DEFAULT_MAX_EVENTS,
        show_default=True,
        help="How many events are kept in memory.",
    )(function)


class ProgramCommand(Command):
    """A command whose last argument is a program; everything after it belongs to the program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert ``--`` before the program: the first ``-m``, ``-c`` or non-option argument."""
        return super().parse_args(ctx, self._separated(args))

    def _separated(self, args: list[str]) -> list[str]:
        takes_value = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        at = 0
        while at < len(args):
            name = args[at]
            if name == "--":
                return args
            if name == "-" or not name.startswith("-") or name[:2] in {"-m", "-c"}:
                return [*args[:at], "--", *args[at:]]
            at += 2 if name in takes_value else 1
        return args


def complete_files(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return file completion for the shell."""
    del ctx, param
    return [CompletionItem(incomplete, type="file")]


def examples(*lines: str) -> Callable[[_Function], _Function]:
    """Append examples to a command's help."""
    text = "\n".join(("\b", "Examples:", *(f"$ {line}" for line in lines)))

    def add(function: _Function) -> _Function:
        function.__doc__ = f"{inspect.getdoc(function)}\n\n{text}"
        return function

    return add


def verb(function: _Function) -> _Function:
    """Let a command pass its options to ``run`` of its module, which is imported only then."""

    def run(**options: Any) -> None:
        import_module(f"gpuviz.commands.{function.__name__}").run(**options)

    return update_wrapper(run, function)
