"""Sources of each language, and the offences of a check in them."""

from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gpuviz"
NATIVE = PACKAGE / "native"
TYPESCRIPT = ROOT / "extension" / "src"
TYPESCRIPT_TESTING = ROOT / "extension" / "testing"


def cpp_files() -> list[Path]:
    return sorted([*NATIVE.rglob("*.hpp"), *NATIVE.rglob("*.cpp")])


@cache
def python_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def typescript_files() -> list[Path]:
    return sorted(TYPESCRIPT.rglob("*.ts"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def offenders(
    paths: list[Path], wrong_in: Callable[[Path], Collection[str]]
) -> dict[str, Collection[str]]:
    """Return the offences of each file that has any."""
    return {relative(path): wrong for path in paths if (wrong := wrong_in(path))}


def in_circles(edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return what files import that are in a circle, or import one that is."""
    found = dict(edges)
    while leaves := {name for name, targets in found.items() if not targets & found.keys()}:
        found = {name: targets for name, targets in found.items() if name not in leaves}
    return found
