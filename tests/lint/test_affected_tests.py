"""Which unit tests ``scripts/check`` runs for which changed files."""

import pytest

from scripts.affected_tests import ROOT, affected


@pytest.mark.parametrize("rule", sorted((ROOT / "gpuviz/advice/rules").glob("r*.py")))
def test_each_rule_affects_tests(rule):
    assert affected([str(rule.relative_to(ROOT))])


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("gpuviz/advice/rules/r33_wider_type.py", ["tests/unit/advice/test_wider_type.py"]),
        ("gpuviz/advice/findings.py", ["tests/unit/advice"]),
        ("gpuviz/native/hazards/engine.cpp", ["tests/unit/hazards"]),
        ("gpuviz/native/cupti/callbacks.cpp", ["tests/unit/record", "tests/unit/recorder"]),
        ("gpuviz/quantities.py", ["tests/unit/test_quantities.py"]),
        ("gpuviz/__init__.py", ["tests/unit/test_public_api.py"]),
        ("tests/unit/advice/test_wider_type.py", ["tests/unit/advice/test_wider_type.py"]),
        ("tests/unit/advice/programs.py", ["tests/unit/advice"]),
        ("tests/unit/a_room_that_was_deleted/test_all.py", []),
        ("pyproject.toml", ["tests/unit"]),
        ("docs/index.md", []),
    ],
)
def test_a_file_affects_the_tests_of_its_room(changed, tests):
    assert affected([changed]) == tests


def test_a_folder_includes_its_modules():
    changed = ["gpuviz/advice/rules/r33_wider_type.py", "gpuviz/advice/findings.py"]

    assert affected(changed) == ["tests/unit/advice"]
