"""Allowed imports between rooms of Python. A file without a rule fails."""

import re
from pathlib import Path

from tests.lint.python_imports import imports, typing_modules
from tests.lint.python_rooms import LATER, PYTHON, module_of, room_of
from tests.lint.source_files import PACKAGE, in_circles, offenders, python_files


def test_a_python_file_imports_only_rooms_before_its_own():
    assert offenders(python_files(), imports_of_later_rooms) == {}


def imports_of_later_rooms(path: Path) -> set[str]:
    module = module_of(path)
    if module == "__init__":
        return set()
    room = room_of(module)
    assert room, f"{module} is in no room"
    wrong = set[str]()
    for name, at_import in imports(path):
        target = name.removeprefix("gpuviz.")
        if not name.startswith("gpuviz.") or not room_of(target):
            continue
        is_known = not at_import and any(
            f"{target}.".startswith(f"{each}.") for each in LATER.get(module, ())
        )
        if PYTHON.index(room_of(target)) > PYTHON.index(room) and not is_known:
            wrong.add(name)
    return wrong


def test_no_python_files_import_each_other_in_a_circle():
    edges = {module_of(path): imported_modules(path) for path in python_files()}

    assert in_circles(edges) == {}


def imported_modules(path: Path) -> set[str]:
    """Return the modules that a file imports, also in functions, but not for annotations."""
    known = {module_of(each) for each in python_files()}
    presented = LATER.get(module_of(path), set())
    found = set[str]()
    for name, _ in imports(path):
        target = name.removeprefix("gpuviz.")
        if name.startswith("gpuviz."):
            owner = target if target in known else target.rpartition(".")[0]
            found |= {owner} & known - presented
    return found - typing_modules(path) - {module_of(path)}


def test_only_templates_escape_and_write_tables():
    """HTML made elsewhere is text that `present.markup` fills in and escapes."""

    def wrong(path: Path) -> set[str]:
        escaping = {name for name, _ in imports(path) if name == "html.escape"}
        return escaping | set(re.findall(r"<t(?:able|r|d|h)\b", path.read_text()))

    assert offenders(python_files(), wrong) == {}


def test_headline_numbers_are_worded_in_one_module():
    owner = PACKAGE / "conclusions" / "numbers.py"
    others = [path for path in python_files() if path != owner]

    assert offenders(others, lambda path: re.findall(r"\bNumber\(", path.read_text())) == {}
