"""Imports of Python files: when they run, and which are for annotations only."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.lint.source_files import ROOT


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Return the absolute name of each import, and whether it runs when the file is imported."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    tree = tree_of(path)
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    at_import = {id(node) for node in statements(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in at_import
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{base}.{alias.name}", id(node) in at_import


def typing_imports(path: Path) -> set[str]:
    """Return the modules imported for annotations only."""
    return {
        alias.name
        for block in ast.walk(tree_of(path))
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.Import)
        for alias in node.names
    }


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements that run on import: no function bodies, no TYPE_CHECKING blocks."""
    for node in ast.iter_child_nodes(tree):
        typing_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or typing_only:
            continue
        yield node
        yield from statements(node)


def typing_modules(path: Path) -> set[str]:
    """Return the modules whose names are imported for annotations only."""
    blocks = [
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    typing = {id(node) for block in blocks for node in ast.walk(block)}
    real = {
        node.module
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and id(node) not in typing
    }
    only = {
        node.module
        for block in blocks
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
    }
    return {str(name).removeprefix("gpuviz.") for name in only - real}


def imports_from(path: Path, libraries: set[str]) -> set[str]:
    return {name for name, _ in imports(path) if name.split(".")[0] in libraries}
