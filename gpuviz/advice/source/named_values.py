"""Names and objects that get what a statement of the program computes, as its text shows."""

import re
from collections.abc import Iterable, Iterator

from gpuviz.advice.source.close_statements import Statement
from gpuviz.data.implied_columns import assigned_names

# Statements that give a value to an object: `errors.append(...)`, `errors[i] = ...`.
_STORE = re.compile(r"(?:\w+\.)*(?P<name>\w+)(?:\.\w+\(|\[[^\]]*\]\s*[-+*/]?=(?!=))")
_CHANGE = re.compile(r"(?:\w+\.)*(?P<name>\w+)\s*(?:[-+*/%&|^@]|//|\*\*|<<|>>)=")
# Statements that only call something with a value, which may keep it: `stopper(error)`.
_CALL = re.compile(r"(?:\w+\.)*(?P<name>\w+)\(")


def assigned(statement: Statement) -> list[str]:
    """Return the names that get what a statement computes."""
    return [name for part in statement.parts for name in assigned_in(part)]


def assigned_in(part: str) -> list[str]:
    """Return the names that get what a simple statement computes."""
    changed = _CHANGE.match(part)
    if changed is not None:
        return [changed["name"]]
    return [name for name in assigned_names(part).split(", ") if name]


def looped(statement: Statement) -> list[str]:
    """Return the names that get what a loop goes over, if its statements are in other lines."""
    is_loop = statement.keyword == "for" and not statement.text
    return re.findall(r"\w+", statement.head.partition(" in ")[0]) if is_loop else []


def computed_from(names: list[str], statements: Iterable[Statement]) -> list[str]:
    """Return some names, and those that statements compute from them."""
    found = [*names]
    for each in statements if names else ():
        found += names_from(each, re.compile(any_of(found)))
    return found


def names_from(statement: Statement, used: re.Pattern[str]) -> list[str]:
    """Return the names that a statement computes from what a pattern finds in it."""
    if statement.keyword == "for":
        names, _, values = statement.head.partition(" in ")
        return re.findall(r"\w+", names) if used.search(values) else []
    return [
        name
        for part in statement.parts
        if used.search(part.partition("=")[2])
        for name in assigned_in(part)
    ]


def uses(pattern: re.Pattern[str], statements: Iterable[Statement], names: list[str]) -> bool:
    """Return whether a statement of a kind has one of some names in its expression."""
    if not names:
        return False
    used = re.compile(any_of(names))
    found = (pattern.match(part) for each in statements for part in each.parts)
    return any(each is not None and used.search(each["value"]) for each in found)


def any_of(names: list[str]) -> str:
    """Return a pattern of any of some names, as text."""
    return rf"\b({'|'.join(map(re.escape, names))})\b"


def objects_with(names: list[str], own: Statement, statements: Iterable[Statement]) -> set[str]:
    """Return the objects that get what a statement computes, by itself or by some names."""
    gives = _that_give(names, own, statements)
    return {found["name"] for found in map(_STORE.match, gives) if found}


def called_with(names: list[str], own: Statement, statements: Iterable[Statement]) -> set[str]:
    """Return what is called with what a statement computes, by itself or by some names."""
    gives = _that_give(names, own, statements)
    return {found["name"] for found in map(_CALL.match, gives) if found}


def _that_give(names: list[str], own: Statement, statements: Iterable[Statement]) -> Iterator[str]:
    """Yield the simple statements of a line, and those of others with some names."""
    yield from own.parts
    used = re.compile(any_of(names)) if names else None
    if used is not None:
        yield from (part for each in statements for part in each.parts if used.search(part))
