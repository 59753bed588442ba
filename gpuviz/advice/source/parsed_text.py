"""Text of a program as a syntax tree; it may come from a file of a stranger."""

import ast


def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree of statements; None if they cannot be understood.

    Such are statements that go on in further lines, and those that are nested more deeply than
    Python's parser can follow.
    """
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def name_called(call: ast.Call) -> str:
    """Return the name of the function or method that a call names; empty if it is another one."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def number_in(node: ast.expr | None) -> int | None:
    """Return the whole number that an expression consists of; None of others."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = number_in(node.operand)
        return None if number is None else -number
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
        return None
    return node.value if isinstance(node.value, int) else None


def parts_of_index(index: ast.expr) -> list[ast.expr]:
    """Return what an index consists of: usually one expression for each axis."""
    return index.elts if isinstance(index, ast.Tuple) else [index]


def is_ellipsis(node: ast.expr) -> bool:
    """Return whether an expression is ``...``."""
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def is_whole(node: ast.expr) -> bool:
    """Return whether a part of an index is ``:``."""
    return isinstance(node, ast.Slice) and node.lower is node.upper is node.step is None
