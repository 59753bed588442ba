"""Allowed imports between layers of TypeScript. A file without a rule fails."""

import re
from pathlib import Path

from tests.lint.source_files import (
    TYPESCRIPT,
    TYPESCRIPT_TESTING,
    in_circles,
    offenders,
    relative,
    typescript_files,
)

# A layer, and the layers that it may import besides itself.
TS = {
    "base": set[str](),
    "wire": {"base"},
    "model": {"base", "wire"},
    "render": {"base"},
    "view": {"base", "wire", "model", "render"},
    "widget": {"base", "wire", "model", "render", "view"},
    "report": {"base", "wire", "model", "render", "view"},
    "lab": {"base", "wire", "model", "render", "view"},
}


def test_a_typescript_file_imports_only_layers_below_it():
    assert offenders(typescript_files(), typescript_imports_of_layers_above) == {}


def typescript_imports_of_layers_above(path: Path) -> set[Path]:
    layer = path.relative_to(TYPESCRIPT).parts[0]
    known = [TYPESCRIPT / each for each in TS[layer] | {layer}]
    if path.name.endswith(".test.ts"):
        known.append(TYPESCRIPT_TESTING)
    return {
        target for target in typescript_imports(path) if not any(map(target.is_relative_to, known))
    }


def typescript_imports(path: Path) -> set[Path]:
    found = re.findall(r"""(?:from|import)\s*\(?\s*["'](\.[^"']*)["']""", path.read_text())
    return {(path.parent / target).resolve() for target in found}


def test_no_typescript_files_import_each_other_in_a_circle():
    edges = {
        relative(path): set(map(relative, typescript_imports(path))) for path in typescript_files()
    }

    assert in_circles(edges) == {}


def test_typescript_does_not_reach_the_network():
    reaching = re.compile(r"\b(?:fetch|WebSocket|XMLHttpRequest|EventSource)\s*\(")

    assert offenders(typescript_files(), lambda path: reaching.findall(path.read_text())) == {}
