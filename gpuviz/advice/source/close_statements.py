"""Statements of the program around a line, as far as their text shows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import plain
from gpuviz.data.implied_columns import OWN, assigned_names
from gpuviz.data.recording_data import RecordingData

_YIELD = re.compile(r"(?:\w+\s*=\s*)?yield\b(.*)")
# Lines before and after a line that are close to it, if they belong to a long function.
_CLOSE = 60
_KEYWORD = re.compile(
    r"(?:async\s+)?(if|elif|else|while|for|match|case|with|try|except|finally|def|class)\b"
)
LOOPS = ("for", "while")
ROUNDS = (*LOOPS, "def")
# Statements that branch by the expression in their head.
_BRANCHES = ("if", "elif", "while", "match")
# What is between semicolons outside of strings.
_PART = re.compile(r"(?:[^;\"']|\"[^\"]*\"|'[^']*')+")
_ASSERTION = re.compile(r"^assert\b(.*)")
# It tells nothing about a value.
_IDENTITY = re.compile(r"[\w.]+\s+is\s+(?:not\s+)?None\b")
# What begins or ends strings, comments and brackets, and colons.
_TOKEN = re.compile(r"\"{3}|'{3}|[\"'#:()\[\]{}]")
_LONG_QUOTES = ("", '"""', "'''")
# `a if condition else b`, and the conditions of comprehensions.
_INLINE = re.compile(r"\bif\b(.+?)(?:\belse\b|[\])}]|$)")


@dataclass(frozen=True)
class Statement:
    """A statement in one line.

    Attributes:
        text: What it does, without its indentation; if it begins a block, what follows in the same
            line, as in ``if verbose: print(x)``.
        indentation: How far it is indented.
        keyword: The keyword of the block that it begins, such as ``if``; empty without one.
        head: What follows that keyword, such as a condition.
        number: The number of its first line in the file; 0 if unknown.
    """

    text: str
    indentation: int
    keyword: str
    head: str
    number: int = 0

    @property
    def branches(self) -> bool:
        """Whether it begins a block that runs depending on its head."""
        return self.keyword in _BRANCHES

    @cached_property
    def parts(self) -> list[str]:
        """The simple statements of its text, which semicolons separate."""
        if ";" not in self.text:
            return [self.text]
        return [each for each in map(str.strip, _PART.findall(self.text)) if each]

    @cached_property
    def conditions(self) -> list[str]:
        """The expressions by which it decides what to do."""
        found = [self.head] if self.branches else []
        found += [each for part in self.parts for each in _ASSERTION.findall(part)]
        found += _INLINE.findall(self.text)
        return [_IDENTITY.sub("None", each) for each in found]


@dataclass(frozen=True)
class CloseStatements:
    """The statements around a line, in order.

    Attributes:
        statements: All of them.
        own: The place of the line's own statement among them.
    """

    statements: tuple[Statement, ...]
    own: int

    @property
    def line(self) -> Statement:
        """The statement that the line belongs to."""
        return self.statements[self.own]

    @cached_property
    def of_round(self) -> tuple[Statement, ...]:
        """Those of the innermost loop or function around the line.

        If it is in none, those outside of functions.
        """
        begin = self._head()
        if begin < 0:
            return tuple(self._outside_of_functions())
        end = self.statements[begin].indentation
        inside = takewhile(lambda each: each.indentation > end, self.statements[begin + 1 :])
        return (self.statements[begin], *inside)

    @cached_property
    def tried(self) -> tuple[Statement, ...]:
        """The statements of the ``try`` block whose ``except`` block the line is in, if it is."""
        handler = next(self._blocks_around("except"), None)
        if handler is None:
            return ()
        end = self.statements.index(handler)
        for place in range(end - 1, -1, -1):
            each = self.statements[place]
            if each.indentation > handler.indentation:
                continue
            if each.indentation == handler.indentation and each.keyword == "except":
                end = place
            elif each.indentation == handler.indentation and each.keyword == "try":
                return self.statements[place + (not each.text) : end]
            else:
                return ()
        return ()

    def _blocks_around(self, keyword: str) -> Iterator[Statement]:
        """Yield the heads of certain blocks of the same function around the line, innermost first.

        That is the line itself if it is one.
        """
        least = self.line.indentation + 1
        for each in reversed(self.statements[: self.own + 1]):
            if each.indentation < least:
                least = each.indentation
                if each.keyword in ("def", "class"):
                    return
                if each.keyword == keyword:
                    yield each

    @property
    def is_yielded(self) -> bool:
        """Whether the line assigns to a name that a statement yields."""
        names = set(filter(None, assigned_names(self.line.text).split(", ")))
        found = (_YIELD.match(each.text) for each in self.statements)
        return any(names & set(re.findall(r"\w+", each[1])) for each in found if each)

    def _outside_of_functions(self) -> Iterator[Statement]:
        within: int | None = None
        for each in self.statements:
            if within is not None and each.indentation > within:
                continue
            within = each.indentation if each.keyword == "def" else None
            yield each

    def _head(self) -> int:
        """Return the place of the head of what the line is in; -1 if none is seen."""
        least = self.line.indentation + (self.line.keyword in LOOPS)
        for place in range(self.own, -1, -1):
            each = self.statements[place]
            if each.indentation < least:
                least = each.indentation
                if each.keyword in ROUNDS:
                    return place
        return -1


def close_statements(frame: dict[str, Any]) -> CloseStatements:
    """Return the statements around the line of a frame; the line alone if others are unknown."""
    place = frame["line"] - frame["context_line"]
    lines = frame["context"].split("\n")
    if not 0 <= place < len(lines) or not lines[place].strip():
        return CloseStatements((_statement(frame["source"]),), 0)
    first = max(place - _CLOSE, 0)
    shown = lines[first : place + _CLOSE + 1]
    # The text may begin within a string; a line that runs is not within one.
    begins_in = next(
        (each for each in _LONG_QUOTES if not _quote(shown[: place - first], each)), ""
    )
    statements: list[Statement] = []
    own = 0
    for begin, text in _joined(shown, begins_in):
        if first + begin <= place:
            own = len(statements)
        statements.append(_statement(text, frame["context_line"] + first + begin))
    return CloseStatements(tuple(statements), own)


def statements_around(recording: RecordingData, line: Frame) -> CloseStatements:
    """Return the statements around a line of the program; none around one of other code."""
    frames = recording.tables["frames"]
    for row in np.flatnonzero(plain(frames["line"]) == line.line).tolist():
        frame = {name: frames[name][row].as_py() for name in frames.column_names}
        is_same = (frame["name"], frame["filename"]) == (line.name, line.filename)
        if is_same and line.installed == OWN and frame["cell"] == line.cell:
            return close_statements(frame)
    return close_statements({"source": line.source, "line": 0, "context_line": 1, "context": ""})


def _quote(lines: list[str], begins_in: str) -> str:
    """Return the quotes of the string that some lines end in; empty outside of one."""
    quote = begins_in
    for line in lines:
        _, _, quote = _brackets(line, quote)
    return quote


def _joined(lines: list[str], begins_in: str) -> Iterator[tuple[int, str]]:
    """Yield the number of the first line and the text of each statement.

    Without most of the text of strings that go on in further lines, such as the source of a kernel.
    """
    begin, text, depth, quote, is_cut = 0, "", 0, begins_in, bool(begins_in)
    for number, line in enumerate(lines):
        end = _string_end(line, 0, quote) if quote else 0
        bare = f"{quote}{line[max(end, 0) :].strip()}"
        if end < 0 or not bare or bare.startswith("#"):
            continue
        if text:
            text = f"{text} {bare}"
        else:
            begin, text = number, line
        opened, _, quote = _brackets(line[end:])
        depth += opened
        if depth <= 0 and not quote:
            if not is_cut:
                yield begin, text
            text, depth, is_cut = "", 0, False
    if text and not is_cut:
        yield begin, text


def _statement(line: str, number: int = 0) -> Statement:
    text = line.strip()
    indentation = len(line) - len(line.lstrip())
    found = _KEYWORD.match(text)
    _, colon, _ = _brackets(text)
    if found is None or colon < 0:
        return Statement(text, indentation, "", "", number)
    body = text[colon + 1 :].partition("#")[0].strip()
    head = text[found.end() : colon].strip()
    return Statement(body, indentation, found[1], head, number)


def _string_end(text: str, begin: int, quote: str) -> int:
    """Return the place after the end of a string; -1 if it goes on."""
    found = re.compile(rf"(?:\\.|[^\\])*?{quote}").match(text, begin)
    return found.end() if found else -1


def _brackets(text: str, quote: str = "") -> tuple[int, int, str]:
    """Return how many brackets a line opens, and the place of its first colon outside of them.

    And the quotes of the string that goes on in the next line; empty without one.

    Args:
        text: The line.
        quote: The quotes of the string that it begins in.
    """
    depth, colon, place = 0, -1, 0
    while True:
        if quote:
            place = _string_end(text, place, quote)
            if place < 0:
                return depth, colon, quote if quote in _LONG_QUOTES else ""
            quote = ""
        found = _TOKEN.search(text, place)
        if found is None or found[0] == "#":
            return depth, colon, ""
        sign, place = found[0], found.end()
        if sign[0] in "'\"":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif not depth and colon < 0:
            colon = found.start()
