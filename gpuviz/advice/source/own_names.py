"""Names that alone refer to what the statements of a block make, as far as their text shows."""

import ast
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from gpuviz.advice.source.parsed_text import parsed

if TYPE_CHECKING:
    from gpuviz.advice.source.close_statements import Statement

# Methods that a statement calls to let an object refer to their arguments.
_ADDS = ("add", "append", "appendleft", "extend", "insert", "put", "update")
_CONTAINERS = ("dict", "list", "set", "tuple", "zip")


def stores_elsewhere(statement: "Statement") -> bool:
    """Return whether a statement lets anything but a name refer to what it makes.

    It does if its text cannot be understood.
    """
    tree = parsed(statement.text)
    return tree is None or any(True for _ in _stored(tree))


def assigned(statement: "Statement") -> set[str]:
    """Return the names that a statement assigns to; none if it stores anything elsewhere."""
    tree = parsed(statement.text)
    if tree is None or stores_elsewhere(statement):
        return set()
    return set(chain.from_iterable(names for names, _ in _assignments(tree)))


def shared_names(tried: "Iterable[Statement]", handled: "Iterable[Statement]") -> set[str]:
    """Return the names whose values may stay when a ``try`` block has failed.

    Args:
        tried: The statements of the block, some of which store values elsewhere.
        handled: Those of its ``except`` block, which read the names.
    """
    trees = list(filter(None, (parsed(each.text) for each in handled)))
    nodes = chain.from_iterable(map(ast.walk, trees))
    found = {
        each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    for tree in reversed(list(filter(None, (parsed(each.text) for each in tried)))):
        for names, value in _assignments(tree):
            found |= _referred(value) if found & names else set()
        found.update(*map(_referred, _stored(tree)))
    return found


def _assignments(tree: ast.Module) -> Iterator[tuple[set[str], ast.expr]]:
    """Yield the names that are assigned to, and the value."""
    for each in tree.body:
        if isinstance(each, ast.Assign):
            names = chain.from_iterable(map(_names, each.targets))
            yield set(names), each.value
        elif isinstance(each, ast.AnnAssign) and each.value is not None:
            yield set(_names(each.target)), each.value


def _names(target: ast.expr) -> Iterator[str]:
    for each in ast.walk(target):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id


def _stored(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the values that something else than a name then refers to."""
    for each in ast.walk(tree):
        match each:
            case ast.Assign(targets=targets, value=value):
                if not all(map(_is_of_names, targets)):
                    yield value
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                if not _is_of_names(target):
                    yield value
            case ast.AugAssign(value=value) | ast.Yield(value=ast.expr() as value):
                yield value
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name)) as call) if name in _ADDS:
                yield from _arguments(call)
            case ast.Call(func=ast.Attribute(attr="setdefault")):
                yield from _arguments(each)


def _is_of_names(target: ast.expr) -> bool:
    parts = ast.walk(target)
    return not any(isinstance(each, ast.Attribute | ast.Subscript) for each in parts)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords)]


def _referred(value: ast.expr) -> set[str]:
    """Return the names of what the value of an expression may refer to.

    Such as its parts, or what it is a view of. What a function returns is assumed to be new.
    """
    found, left = set[str](), [value]
    while left:
        each = left.pop()
        if isinstance(each, ast.Name):
            found.add(each.id)
        left += _parts(each)
    return found


def _parts(value: ast.expr) -> list[ast.expr]:
    parts: list[ast.expr] = []
    match value:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if (
            name in _CONTAINERS or name[0].isupper()
        ):
            parts = _arguments(value)
        case ast.Call(func=ast.Attribute(value=part)):
            parts = [part]
        case ast.Attribute(value=part) | ast.Subscript(value=part) | ast.Starred(value=part):
            parts = [part]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            pass
        case ast.Dict(values=parts):
            pass
        case ast.BinOp(left=left, right=right):
            parts = [each for each in (left, right) if isinstance(each, ast.List | ast.Tuple)]
        case ast.IfExp(body=body, orelse=orelse):
            parts = [body, orelse]
    return parts
