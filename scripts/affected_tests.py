"""Prints the unit tests of what differs from the main branch, for ``scripts/check``.

Tests mirror the rooms of the package, so a changed file affects the tests of its room. In the room
of advice, which has most tests, it affects those that import it, and those of the rules that import
it: the tests with the rule's name, and those that name the rule, such as ``R45``. What depends on
the room is left to ``scripts/test``, or to ``scripts/check --all``.

Usage: python -m scripts.affected_tests [--languages]; with it, prints the languages to check.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_UNIT = ROOT / "tests/unit"
# Branches to compare with; the first that exists.
_MAIN = ("origin/main", "main")
# Changes of these can affect each test.
_EVERYTHING = ("CMakeLists.txt", "cmake/", "pyproject.toml", "scripts/setup", "tests/conftest.py")
# Rooms whose tests have another name, or are in several folders.
_TESTED_IN = {
    "__init__.py": ("public_api",),
    "analysis": ("analysis", "recording"),
    "data": ("data", "recording"),
    "native/analysis": ("analysis", "recording"),
    "native/record": ("record", "recorder"),
    "native/torch": ("recorder", "frameworks"),
    "recording.py": ("recording",),
    "recording_diff.py": ("comparison",),
}
# What other rooms of C++ are tested by: those that record.
_NATIVE = ("record", "recorder")
# What the checks of a language read, beside what affects everything; Python's are always run.
_CHECKED = {"cpp": ("gpuviz/native/", ".clang-format"), "typescript": ("extension/",)}
_CHECKS = ("scripts/static-checks", *_EVERYTHING)
_ADVICE = "gpuviz/advice/"
_TESTS_OF_ADVICE = "tests/unit/advice"
_RULE = re.compile(r"gpuviz/advice/rules/r(\d+)_(\w+)\.py")


def affected(paths: Iterable[str]) -> list[str]:
    """Return the files and folders of unit tests for changed files, by path from the root."""
    found = set[str]()
    for path in paths:
        if path.startswith(_EVERYTHING):
            return ["tests/unit"]
        if path.startswith("tests/unit/"):
            found |= _of_test(path)
        elif path.startswith(_ADVICE):
            found |= _of_advice(path)
        elif path.startswith("gpuviz/"):
            found |= _of_source(path.removeprefix("gpuviz/"))
    return sorted(each for each in found if not found & set(map(str, Path(each).parents)))


def languages(paths: Iterable[str]) -> list[str]:
    """Return the languages whose static checks read one of these files."""
    changed = [*paths]
    checked = (each for each, read in _CHECKED.items() if _any_in(changed, (*read, *_CHECKS)))
    return ["python", *checked]


def _any_in(paths: Iterable[str], places: tuple[str, ...]) -> bool:
    return any(path.startswith(places) for path in paths)


def _of_advice(path: str) -> set[str]:
    """Return the tests that import a file of advice, or are about a rule that imports it.

    Those that name a rule are elsewhere if none of advice do. All tests of advice, if there are no
    others, or the file is deleted or not a module.
    """
    if path not in _importers():
        return {_TESTS_OF_ADVICE}
    reached, waiting = {path}, [path]
    while waiting:
        further = _importers()[waiting.pop()] - reached
        reached |= further
        waiting += further
    found = {each for each in reached if Path(each).name.startswith("test_")}
    rules = [rule.groups() for each in reached if (rule := _RULE.fullmatch(each))]
    for number, words in rules:
        named = _naming(f"R{number}")
        found |= {each for each in named if each.startswith(_TESTS_OF_ADVICE)} or named
        found |= {_relative(each) for each in _UNIT.glob(f"*/test_{words}*.py")}
    return found or {_TESTS_OF_ADVICE}


@cache
def _naming(rule: str) -> frozenset[str]:
    """Return the tests that name a rule."""
    named = re.compile(rf"\b{rule}\b")
    return frozenset(path for path, text in _texts().items() if named.search(text))


@cache
def _texts() -> dict[str, str]:
    """Return the texts of all modules of tests, by path."""
    return {_relative(each): each.read_text(encoding="utf-8") for each in _UNIT.rglob("test_*.py")}


@cache
def _importers() -> dict[str, set[str]]:
    """Return which files import each module of the package, and of the tests of advice.

    Here only rules and tests import rules: by the lists of rules, each test of findings would.
    """
    sources = [*(ROOT / "gpuviz").rglob("*.py"), *(ROOT / _TESTS_OF_ADVICE).rglob("*.py")]
    names = {_relative(each) for each in sources}
    importers: dict[str, set[str]] = {name: set() for name in names}
    for name in names:
        imported = {_file(each) for each in _imported(ast.parse((ROOT / name).read_bytes()))}
        if name.startswith("gpuviz/") and not _RULE.fullmatch(name):
            imported = {each for each in imported if not _RULE.fullmatch(each)}
        for each in imported & names:
            importers[each].add(name)
    return importers


def _imported(code: ast.AST) -> Iterator[str]:
    """Yield the names of modules, and perhaps of what is in them, that a module needs to run."""
    for node in ast.iter_child_nodes(code):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from _imported(node)


def _file(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _relative(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def _of_test(path: str) -> set[str]:
    """Return a changed module of tests, or the folder that a helper is for."""
    is_test = Path(path).name.startswith("test_")
    place = path if is_test and (ROOT / path).exists() else str(Path(path).parent)
    return {place} if (ROOT / place).exists() else set()


def _of_source(path: str) -> set[str]:
    parts = path.split("/")
    room = "/".join(parts[:2]) if parts[0] == "native" else parts[0]
    rooms = _TESTED_IN.get(room, (parts[1] if parts[0] == "native" else Path(room).stem,))
    places = {f"tests/unit/{each}" for each in rooms if (_UNIT / each).is_dir()}
    modules = (f"tests/unit/test_{each}.py" for each in rooms)
    places |= {each for each in modules if (ROOT / each).exists()}
    if places or parts[0] != "native":
        return places
    return {f"tests/unit/{each}" for each in _NATIVE}


def _changed() -> list[str]:
    """Return the paths of what differs from the main branch, committed or not."""
    known = (_lines("rev-parse", "--verify", "--quiet", each, check=False) for each in _MAIN)
    base = next((commit[0] for commit in known if commit), "HEAD")
    base = (_lines("merge-base", base, "HEAD", check=False) or ["HEAD"])[0]
    return [
        *_lines("diff", "--name-only", "--no-renames", base),
        *_lines("ls-files", "--others", "--exclude-standard"),
    ]


def _lines(*command: str, check: bool = True) -> list[str]:
    git = ["git", "-c", f"safe.directory={ROOT}", *command]
    answer = subprocess.run(git, cwd=ROOT, check=check, capture_output=True, text=True)
    return answer.stdout.splitlines()


if __name__ == "__main__":
    chosen = languages if "--languages" in sys.argv else affected
    sys.stdout.writelines(f"{each}\n" for each in chosen(_changed()))
