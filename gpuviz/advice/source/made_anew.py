"""Functions and kernels of CuPy that the program makes anew before a line calls them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpuviz.advice.source.close_statements import (
    LOOPS,
    ROUNDS,
    CloseStatements,
    Statement,
    close_statements,
)
from gpuviz.advice.source.parsed_text import parsed

_FUSE = "fuse"
_KERNELS = ("ElementwiseKernel", "ReductionKernel")
_FUNCTIONS = ("class", "def")
# Python's functions that take no time worth mentioning.
_QUICK = ("abs", "bool", "float", "int", "len", "list", "max", "min", "range", "tuple")
_INNER = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)


@dataclass(frozen=True, slots=True)
class MadeAnew:
    """What a line calls right after it is made, in the same run of the same block.

    Attributes:
        maker: The text that makes it, such as ``@cp.fuse()``.
        name: Its name; empty if the line makes it itself.
        is_fused: Whether it is a fused function, and not a kernel.
        statements: Where the statements begin that make it and that call it, as lines of the file.
        attributes: The names of attributes in the line, which may be properties.
        close: The statements around the line.
    """

    maker: str
    name: str
    is_fused: bool
    statements: frozenset[int]
    attributes: frozenset[str]
    close: CloseStatements

    def has_line(self, line: int) -> bool:
        """Return whether a line of the file is in the statements that make or call it."""
        begins = [each.number for each in self.close.statements if each.number <= line]
        return bool(begins) and begins[-1] in self.statements


@dataclass(frozen=True, slots=True)
class _Maker:
    text: str
    is_fused: bool
    numbers: tuple[int, ...]


def made_anew(frame: dict[str, Any]) -> MadeAnew | None:
    """Return what the line of a frame calls that is made anew each time; None without such.

    A decorator, or an assignment to a name, makes it before the line in the same block or one
    around it, and not before the loop or the function that the line is in. Or the line makes it
    itself. None if the line calls anything else before, which may take time of its own.
    """
    close = close_statements(frame)
    line = close.line
    trees = [parsed(each) for each in (line.head, line.text) if each]
    if line.keyword in _FUNCTIONS:
        trees = trees[-1:]
    if line.keyword in LOOPS or not trees or None in trees:
        return None
    nodes = [node for tree in trees if tree is not None for node in ast.walk(tree)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    inner = {each for node in nodes if isinstance(node, _INNER) for each in ast.walk(node)}
    makers = dict(_made_before(close, {_name_of(each) for each in calls} - {""}))
    made = [each for each in calls if _name_of(each) in makers or _is_made_here(each)]
    if len(made) != 1 or made[0] in inner:
        return None
    call = made[0]
    part_of_it = set(ast.walk(call.func))
    for each in calls:
        # What the result is given to runs after it.
        if each in part_of_it or call in ast.walk(each) or _name_of(each) in _QUICK:
            continue
        return None
    name = _name_of(call)
    maker = makers.get(name) or _Maker(line.text, _root(call.func) == _FUSE, ())
    return MadeAnew(
        maker.text,
        name,
        maker.is_fused,
        frozenset((line.number, *maker.numbers)),
        frozenset(each.attr for each in nodes if isinstance(each, ast.Attribute)),
        close,
    )


def _made_before(close: CloseStatements, names: set[str]) -> Iterator[tuple[str, _Maker]]:
    """Yield which of some names get what is made, in the innermost loop or function."""
    if close.line.keyword in _FUNCTIONS:
        return
    least, sought = close.line.indentation, set(names)
    for place in range(close.own - 1, -1, -1):
        each = close.statements[place]
        if each.indentation > least:
            continue
        if each.indentation < least:
            least = each.indentation
            if each.keyword in (*ROUNDS, *_FUNCTIONS):
                return
            continue
        name, maker = _assignment(each, close.statements[:place])
        if name in sought:
            sought.remove(name)
            if maker is not None:
                yield name, maker


def _assignment(each: Statement, before: tuple[Statement, ...]) -> tuple[str, _Maker | None]:
    """Return the name that a statement defines or assigns to, and what it makes for it."""
    if each.keyword == "def":
        name = each.head.partition("(")[0].strip()
        return name, _decorator(each, before)
    tree = None if each.keyword else parsed(each.text)
    match tree.body if tree else ():
        case [ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=called) as value)]:
            root = _root(value)
            is_kernel = root in _KERNELS and not isinstance(called, ast.Call)
            if root == _FUSE or is_kernel:
                return name, _Maker(each.text, root == _FUSE, (each.number,))
            return name, None
        case [ast.Assign(targets=[ast.Name(id=name)])]:
            return name, None
    return "", None


def _decorator(each: Statement, before: tuple[Statement, ...]) -> _Maker | None:
    """Return the decorator that fuses a function."""
    for other in reversed(before):
        if not other.text.startswith("@"):
            return None
        tree = parsed(other.text[1:])
        value = tree.body[0] if tree and tree.body else None
        if isinstance(value, ast.Expr) and _root(value.value) == _FUSE:
            return _Maker(other.text, True, (other.number, each.number))
    return None


def _is_made_here(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Call) and _root(call.func) in (_FUSE, *_KERNELS)


def _root(value: ast.expr) -> str:
    """Return the name of what is called first, such as ``fuse`` of ``cp.fuse()(f)``."""
    while isinstance(value, ast.Call):
        value = value.func
    return value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")


def _name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""
