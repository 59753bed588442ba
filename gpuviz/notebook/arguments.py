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
# How argparse begins to tell of a word that it does not know.
_UNKNOWN = re.compile(r"(?:.*invalid choice: '|unrecognized arguments: )(?P<word>[^\s']+)")


class HelpShown(Exception):  # noqa: N818 - it is no error
    """The user asked for help, which is the text of this."""


class _Parser(ArgumentParser):
    """Tells of wrong arguments in a sentence, and never ends the process."""

    def error(self, message: str) -> NoReturn:
        sentence = f"{message[:1].upper()}{message[1:]}."
        unknown = _UNKNOWN.match(message)
        meant = "" if unknown is None else self._meant(unknown["word"])
        raise UsageError(f"{sentence}{meant} `{self.prog} --help` tells what there is.")

    def words(self) -> Iterator[str]:
        """Yield all options and commands, also those of commands."""
        for action in self._actions:
            yield from action.option_strings
            if isinstance(action.choices, dict):
                for name, parser in action.choices.items():
                    yield name
                    yield from parser.words()

    def following(self, words: list[str]) -> list[str]:
        """Return the commands, or of the command that is among some words the options."""
        for action in self._actions:
            if isinstance(action.choices, dict):
                commands = [word for word in words if word in action.choices]
                return [*action.choices[commands[0]].words()] if commands else [*action.choices]
        return [*self.words()]

    def _meant(self, word: str) -> str:
        if word in set(_line_parser().words()) - set(self.words()):
            return f" Did you mean the line magic `%gpuviz {word}`, with a single %?"
        known = {each.lstrip("-"): each for each in self.words()}
        near = get_close_matches(word.lstrip("-"), known, n=1)
        return f" Did you mean `{known[near[0]]}`?" if near else ""

    def print_help(self, file: object = None) -> NoReturn:
        """Raise the text, wherever it should have gone."""
        del file
        raise HelpShown(self.format_help())


def parse_line(line: str) -> Namespace:
    """Return the arguments of ``%gpuviz``; ``command`` is the verb.

    Raises:
        UsageError: They are wrong; the text is a sentence.
        HelpShown: ``--help`` is among them.
    """
    words = _words(line)
    if words[:1] == [CELL_COMMAND]:
        return _cell_parser().parse_args(words[1:], Namespace(command=CELL_COMMAND))
    if words and words[0].startswith("-") and words[0] not in HELP:
        # Else its value would be taken for a command.
        _line_parser().error(f"unrecognized arguments: {' '.join(words)}")
    arguments = _line_parser().parse_args(words)
    if arguments.command is None:
        raise HelpShown(_line_parser().format_help())
    return arguments


def parse_cell(line: str) -> Namespace:
    """Return the arguments of ``%%gpuviz``, as `parse_line` does."""
    return _cell_parser().parse_args(_words(line))


def words_after(magic: str, words: list[str]) -> list[str]:
    """Return the options and commands that may follow some words after a magic."""
    parser = _cell_parser() if magic.startswith("%%") else _line_parser()
    return [word for word in parser.following(words) if word not in words]


def help_text() -> str:
    """Return the help on both magics."""
    return f"{_line_parser().format_help()}\n{_cell_parser().format_help()}"


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise UsageError(f"The arguments cannot be read ({error}): {line}") from None


def _line_parser() -> _Parser:
    parser = _Parser(prog="%gpuviz", description="Record GPU memory and streams.")
    verbs = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def add(name: str, explanation: str) -> _Parser:
        return verbs.add_parser(
            name, prog=f"%gpuviz {name}", help=explanation, description=explanation
        )

    start = add("start", "Begin recording.")
    start.add_argument("path", nargs="?", metavar="PATH", help="the .gpuviz file to record to")
    _add_recording_options(start)
    add("stop", "End recording; tells what there is to know in a line.")
    add("status", "Tell what has been recorded, what was lost, and what it cost.")
    add("dashboard", "Show the live view.")
    add("clear", "Forget what was recorded, and go on in memory if it records.")
    for name, kind in (("report", "HTML page"), ("save", ".gpuviz file")):
        verb = add(name, f"Write what was recorded as one {kind}.")
        verb.add_argument("file", metavar="FILE")
        verb.add_argument("--force", action="store_true", help="replace the file if it exists")
        if name == "report":
            verb.add_argument("--redact", action="store_true", help="leave names and paths out")
    add(CELL_COMMAND, "Measure the rest of this cell, as %%%%gpuviz does.")
    return parser


def _cell_parser() -> _Parser:
    parser = _Parser(
        prog="%%gpuviz",
        description="Record one cell, and show what it did to GPU memory and streams. While "
        "gpuviz records anyway, the cell is measured in that, as it was started.",
    )
    parser.add_argument("--report", metavar="FILE", help="also write an HTML report of the cell")
    parser.add_argument("--save", metavar="FILE", help="also write the cell's recording")
    parser.add_argument("--force", action="store_true", help="replace these files if they exist")
    parser.add_argument("--quiet", action="store_true", help="show nothing under the cell")
    _add_recording_options(parser)
    return parser


def _add_recording_options(parser: _Parser) -> None:
    options: tuple[tuple[str, str], ...] = (
        ("--no-stacks", "do not record call stacks"),
        ("--no-streams", "record memory only"),
        ("--observe", "leave the program's own allocator in place"),
    )
    for name, explanation in options:
        parser.add_argument(name, action="store_true", help=explanation)
    parser.add_argument(
        "--simulated", metavar="NAME", help="record the gpuviz.SimulatedGPU of this name"
    )
