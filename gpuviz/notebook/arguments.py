"""Arguments of ``%gpuviz`` and ``%%gpuviz``."""

import re
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from difflib import get_close_matches
from typing import NoReturn

from IPython.core.error import UsageError

CELL_COMMAND = "cell"
HELP = ("-h", "--help")
# The start of argparse's message about an unknown word.
_UNKNOWN = re.compile(r"(?:.*invalid choice: '|unrecognized arguments: )(?P<word>[^\s']+)")


class HelpShown(Exception):  # noqa: N818 - not an error
    """A request for help; the text is the help."""


class _Parser(ArgumentParser):
    """Reports wrong arguments in a sentence, and never exits the process."""

    def error(self, message: str) -> NoReturn:
        sentence = f"{message[:1].upper()}{message[1:]}."
        unknown = _UNKNOWN.match(message)
        meant = "" if unknown is None else self._meant(unknown["word"])
        raise UsageError(f"{sentence}{meant} See `{self.prog} --help`.")

    def words(self) -> Iterator[str]:
        """Yield all commands and options, including options of commands."""
        for action in self._actions:
            yield from action.option_strings
            if isinstance(action.choices, dict):
                for name, parser in action.choices.items():
                    yield name
                    yield from parser.words()

    def following(self, words: list[str]) -> list[str]:
        """Return the commands; of a command in ``words`` its options, or values of the last one."""
        for action in self._actions:
            if isinstance(action.choices, dict):
                commands = [word for word in words if word in action.choices]
                if not commands:
                    return [*action.choices]
                command: _Parser = action.choices[commands[0]]
                return command.following(words)
            if action.choices and words[-1:] and words[-1] in action.option_strings:
                return [*action.choices]
        return [*self.words()]

    def _meant(self, word: str) -> str:
        if word in set(_line_parser().words()) - set(self.words()):
            return f" Did you mean the line magic `%gpuviz {word}`, with a single %?"
        known = {each.lstrip("-"): each for each in self.words()}
        near = get_close_matches(word.lstrip("-"), known, n=1)
        return f" Did you mean `{known[near[0]]}`?" if near else ""

    def print_help(self, file: object = None) -> NoReturn:
        """Raise the help text instead of printing it."""
        del file
        raise HelpShown(self.format_help())


def parse_line(line: str) -> Namespace:
    """Return the arguments of ``%gpuviz``; ``command`` is the verb.

    Raises:
        UsageError: The arguments are wrong; the text is a sentence.
        HelpShown: The arguments contain ``--help``.
    """
    words = _words(line)
    if words[:1] == [CELL_COMMAND]:
        return _cell_parser().parse_args(words[1:], Namespace(command=CELL_COMMAND))
    if words and words[0].startswith("-") and words[0] not in HELP:
        # Otherwise its value would be taken for a command.
        _line_parser().error(f"unrecognized arguments: {' '.join(words)}")
    arguments = _line_parser().parse_args(words)
    if arguments.command is None:
        raise HelpShown(_line_parser().format_help())
    return arguments


def parse_cell(line: str) -> Namespace:
    """Return the arguments of ``%%gpuviz``, as `parse_line` does."""
    return _cell_parser().parse_args(_words(line))


def words_after(magic: str, words: list[str]) -> list[str]:
    """Return the commands and options that may follow ``words`` after a magic."""
    parser = _cell_parser() if magic.startswith("%%") else _line_parser()
    return [word for word in parser.following(words) if word not in words]


def parsers() -> Iterator[ArgumentParser]:
    """Yield the parsers of the commands of ``%gpuviz``, then that of ``%%gpuviz``."""
    for action in _line_parser()._actions:  # noqa: SLF001 - argparse has no public list of them
        if isinstance(action.choices, dict):
            yield from action.choices.values()
    yield _cell_parser()


def help_text() -> str:
    """Return the help on both magics."""
    return f"{_line_parser().format_help()}\n{_cell_parser().format_help()}"


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise UsageError(f"Cannot parse the arguments ({error}): {line}") from None


def _line_parser() -> _Parser:
    parser = _Parser(prog="%gpuviz", description="Record GPU memory and streams.")
    verbs = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def add(name: str, explanation: str) -> _Parser:
        return verbs.add_parser(
            name, prog=f"%gpuviz {name}", help=explanation, description=explanation
        )

    start = add("start", "Start recording.")
    start.add_argument("path", nargs="?", metavar="PATH", help="the .gpuviz file to record to")
    start.add_argument("--force", action="store_true", help="replace the file if it exists")
    _add_recording_options(start)
    add("stop", "Stop recording, print a summary, and return the recording.")
    add("status", "Show what has been recorded, dropped events, and the overhead.")
    add("dashboard", "Show the live dashboard.")
    verb = add("findings", "Print what costs memory or time so far, and what to change.")
    verb.add_argument("--all", action="store_true", help="also what saves little")
    verb = add("leaks", "Print what keeps GPU memory alive, how to free it, and which lines grow.")
    verb.add_argument("--all", action="store_true", help="also blocks below 1 MiB")
    add("history", "Compare the runs of each cell: peak, time, busy share of the GPU.")
    add("clear", "Discard what was recorded; a recording in progress continues in memory.")
    for name, kind in (("report", "HTML page"), ("save", ".gpuviz file")):
        verb = add(name, f"Write the recording as one {kind}.")
        verb.add_argument("file", metavar="FILE")
        verb.add_argument("--force", action="store_true", help="replace the file if it exists")
        if name == "report":
            verb.add_argument("--redact", action="store_true", help="remove names and paths")
    add(CELL_COMMAND, "Measure the rest of this cell, like %%%%gpuviz.")
    return parser


def _cell_parser() -> _Parser:
    parser = _Parser(
        prog="%%gpuviz",
        description="Record one cell and show its effect on GPU memory and streams. If a "
        "recording is in progress, the cell is measured within it, with its options.",
    )
    parser.add_argument("--report", metavar="FILE", help="also write an HTML report of the cell")
    parser.add_argument("--save", metavar="FILE", help="also write the cell's recording")
    parser.add_argument("--force", action="store_true", help="replace these files if they exist")
    parser.add_argument("--quiet", action="store_true", help="show nothing under the cell")
    parser.add_argument(
        "--compare", action="store_true", help="show what changed since the cell's previous run"
    )
    _add_recording_options(parser)
    return parser


def _add_recording_options(parser: _Parser) -> None:
    options: tuple[tuple[str, str], ...] = (
        ("--no-stacks", "do not record call stacks"),
        ("--no-streams", "record memory only"),
        ("--observe", "keep the program's own allocator"),
        ("--hazards", "look for unordered operations on the same memory"),
        ("--forbid-default-stream", "list work on the legacy default stream"),
    )
    for name, explanation in options:
        parser.add_argument(name, action="store_true", help=explanation)
    parser.add_argument(
        "--record-stream",
        choices=("off", "report", "auto"),
        default="off",
        help="whether freed memory is reused only after other streams that use it",
    )
    parser.add_argument(
        "--budget",
        metavar="PERCENT",
        help="share of the time that recording streams may cost, as in 2%%",
    )
    parser.add_argument(
        "--poison",
        action="store_true",
        help="fill freed memory, look for later writes to it, and guard pinned memory",
    )
    parser.add_argument(
        "--simulated", metavar="NAME", help="record the gpuviz.SimulatedGPU of this name"
    )
