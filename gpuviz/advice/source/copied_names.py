"""The names of arrays that a statement copies as a whole."""

import ast
from collections.abc import Iterator

from gpuviz.advice.source.parsed_text import (
    is_ellipsis,
    is_whole,
    name_called,
    number_in,
    parts_of_index,
)

_TO_NEW = ("copy", "clone")
_INTO = ("copy_", "copyto")
# What gives an array of PyTorch another name.
_SAME = ("detach",)


def copied_names(tree: ast.Module) -> list[tuple[str, str]]:
    """Return the target and the source of each plain copy of a statement, in their order.

    Plain are ``x.copy()``, ``x.clone()``, ``copyto(y, x)``, ``y.copy_(x)`` and ``y[...] = x``, in
    which both are names, attributes, or elements of them by a constant. Others may change the
    layout, as ``x.T.copy()`` does. The target is empty if the copy has no name.
    """
    return [each for statement in tree.body for each in _of_statement(statement)]


def _of_statement(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    assigned = list(_assigned(statement))
    for target, value in assigned:
        whole = _taken_as_whole(target)
        if whole is not None and _is_named(whole) and _is_named(value):
            yield ast.unparse(whole), ast.unparse(value)
    names = {id(value): ast.unparse(target) for target, value in assigned if _is_named(target)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            yield from _of_call(node, names.get(id(node), ""))


def _assigned(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what is assigned to, and what."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        yield target, value
    elif len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)


def _of_call(call: ast.Call, name: str) -> Iterator[tuple[str, str]]:
    called = name_called(call)
    if called in _TO_NEW:
        source = _source(call)
        if source is not None and _is_named(source):
            yield name, ast.unparse(_without_detaching(source))
    if called in _INTO:
        given: list[ast.expr | None] = [*call.args]
        if called == "copy_":
            given.insert(0, _receiver(call))
        # `where` chooses elements; `copy_` may also get whether the host waits.
        target, source, *_ = [*given, None, None]
        is_whole_copy = all(each.arg == "non_blocking" for each in call.keywords)
        if is_whole_copy and target and source and _is_named(target) and _is_named(source):
            yield ast.unparse(target), ast.unparse(_without_detaching(source))


def _source(call: ast.Call) -> ast.expr | None:
    """Return what is copied by a method without arguments, or by a function of one."""
    if call.keywords or len(call.args) > 1:
        return None
    return call.args[0] if call.args else _receiver(call)


def _receiver(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _is_named(node: ast.expr) -> bool:
    """Return whether an expression is a name, an attribute, or an element of one."""
    if isinstance(node, ast.Call):
        return name_called(node) in _SAME and _is_named(_without_detaching(node))
    while isinstance(node, ast.Attribute | ast.Subscript):
        is_view = isinstance(node, ast.Attribute) and node.attr in {"T", "mT", "H", "real", "imag"}
        if is_view or (isinstance(node, ast.Subscript) and not _is_element(node.slice)):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def _without_detaching(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Call) and name_called(node) in _SAME:
        return _receiver(node) or node
    return node


def _is_element(index: ast.expr) -> bool:
    is_text = isinstance(index, ast.Constant) and isinstance(index.value, str)
    return is_text or number_in(index) is not None


def _taken_as_whole(node: ast.expr) -> ast.expr | None:
    """Return the array that an expression such as ``x[...]`` takes all of; None of others."""
    if not isinstance(node, ast.Subscript):
        return None
    parts = parts_of_index(node.slice)
    return node.value if all(is_ellipsis(each) or is_whole(each) for each in parts) else None
