"""Values by which a loop only decides whether it goes on, such as that of a solver."""

import re
from collections.abc import Sequence
from itertools import takewhile

from gpuviz.advice.source.close_statements import LOOPS, CloseStatements, Statement
from gpuviz.advice.source.conditions import READS, statements_of_value
from gpuviz.advice.source.named_values import any_of, assigned_in
from gpuviz.data.recording_data import RecordingData

_CHANGES = re.compile(r"[^=]*?[-+*/@%&|^]=")
_ENDS = re.compile(r"(?:break|return|raise)\b")


def ends_loop(recording: RecordingData, stack: int) -> bool:
    """Return whether what the line of a call stack computes only decides whether its loop goes on.

    The line itself is the head of a ``while`` loop, or leaves the loop by what it computes, or
    assigns it to a name that nothing in the loop uses but such statements. Then the loop can ask
    less often: it makes a few rounds more. A loop within another one may have few rounds.
    """
    close = statements_of_value(recording, stack)
    if close is None or not close.of_round or close.of_round[0].keyword not in LOOPS:
        return False
    if _is_repeated(close.of_round[0], close.statements):
        return False
    return _only_ends(close)


def _only_ends(close: CloseStatements) -> bool:
    """Return whether a line's value only decides whether the loop around it goes on."""
    head, line, of_round = close.of_round[0], close.line, close.of_round
    if line is head and not line.text:
        return head.keyword == "while"
    if _leaves(line, of_round):
        return True
    reading = [part for part in line.parts if READS.search(part)] or line.parts
    names = [name for part in reading for name in assigned_in(part)]
    if len(names) != 1 or any(map(_CHANGES.match, reading)):
        return False
    used = re.compile(any_of(names))
    if any(used.search(part) for part in line.parts if part not in reading):
        return False
    using = [
        each
        for each in of_round
        if used.search(each.head) or (each is not line and used.search(each.text))
    ]
    return bool(using) and all(
        (each is line or not used.search(each.text))
        and ((each is head and head.keyword == "while") or _leaves(each, of_round))
        for each in using
    )


def _is_repeated(head: Statement, statements: Sequence[Statement]) -> bool:
    """Return whether a loop is within another one, as the few rounds of a line search are."""
    before = next(place for place, each in enumerate(statements) if each is head)
    least = head.indentation
    for each in reversed(statements[:before]):
        if each.indentation < least:
            least = each.indentation
            if each.keyword in ("def", "class"):
                return False
            if each.keyword in LOOPS:
                return True
    return False


def _leaves(statement: Statement, of_round: Sequence[Statement]) -> bool:
    """Return whether a statement leaves a loop under a condition, and does nothing else."""
    if statement.keyword != "if":
        return len(statement.parts) == 1 and statement.text.startswith("assert ")
    if statement.text:
        return _ENDS.match(statement.text) is not None
    begin = next(place for place, each in enumerate(of_round) if each is statement) + 1
    inside = [*takewhile(lambda each: each.indentation > statement.indentation, of_round[begin:])]
    return len(inside) == 1 and _ENDS.match(inside[0].text) is not None
