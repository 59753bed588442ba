"""Bounds on size, and words that must not stay, for the source of all three languages."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_FILE = 350
LONGEST_FUNCTION = 40
SUFFIXES = {".py", ".cpp", ".hpp", ".ts", ".mjs", ".css", ".cmake"}
SOURCES = sorted(
    path
    for folder in ("gpuviz", "extension/src", "tests", "notebooks", "cmake")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in SUFFIXES and "static" not in path.parts and "labextension" not in path.parts
)
PYTHON = [path for path in SOURCES if path.suffix == ".py"]
# Words put together here so that this file does not hold them.
LEFT_OVER = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")))


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is None:
        return lines
    return lines - (first.end_lineno - first.lineno + 1)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_there_are_sources_to_look_at():
    assert len(SOURCES) > 10


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_no_file_is_too_long(path):
    assert len(path.read_text().splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_no_source_leaves_work_for_later(path):
    assert LEFT_OVER.findall(path.read_text()) == []


@pytest.mark.parametrize("path", PYTHON, ids=relative)
def test_no_python_function_is_too_long(path):
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    too_long = [item.name for item in functions if code_lines(item) > LONGEST_FUNCTION]

    assert too_long == []


@pytest.mark.parametrize(
    "path",
    [path for path in PYTHON if path.is_relative_to(ROOT / "gpuviz")],
    ids=relative,
)
def test_the_package_does_not_print(path):
    calls = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"print", "breakpoint"}
    ]

    assert calls == []


def test_no_file_is_a_catch_all():
    names = {"utils", "helpers", "common", "misc", "util", "helper"}

    assert [relative(path) for path in SOURCES if path.stem in names] == []
