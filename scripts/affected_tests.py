"""Prints the unit tests of what differs from the main branch, for ``scripts/check``.

Tests mirror the rooms of the package, so a changed file affects the tests of its room; of a rule,
the tests with its name. What depends on the room is left to ``scripts/test``, or to
``scripts/check --all``.
"""

import subprocess
import sys
from collections.abc import Iterable
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


def affected(paths: Iterable[str]) -> list[str]:
    """Return the files and folders of unit tests for changed files, by path from the root."""
    found = set[str]()
    for path in paths:
        if path.startswith(_EVERYTHING):
            return ["tests/unit"]
        if path.startswith("tests/unit/"):
            found |= _of_test(path)
        elif path.startswith("gpuviz/"):
            found |= _of_source(path.removeprefix("gpuviz/"))
    return sorted(each for each in found if not found & set(map(str, Path(each).parents)))


def _of_test(path: str) -> set[str]:
    """Return a changed module of tests, or the folder that a helper is for."""
    is_test = Path(path).name.startswith("test_")
    place = path if is_test and (ROOT / path).exists() else str(Path(path).parent)
    return {place} if (ROOT / place).exists() else set()


def _of_source(path: str) -> set[str]:
    parts = path.split("/")
    if path.startswith("advice/rules/"):
        words = Path(path).stem.partition("_")[2]
        named = {str(each.relative_to(ROOT)) for each in _UNIT.glob(f"*/test_{words}*.py")}
        return named or {"tests/unit/advice"}
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
    sys.stdout.writelines(f"{each}\n" for each in affected(_changed()))
