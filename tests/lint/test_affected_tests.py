"""Which unit tests ``scripts/check`` runs for which changed files."""

import pytest

from scripts.affected_tests import ROOT, affected, languages


@pytest.mark.parametrize("rule", sorted((ROOT / "gpuviz/advice/rules").glob("r*.py")))
def test_each_rule_affects_tests(rule):
    assert affected([str(rule.relative_to(ROOT))])


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("gpuviz/advice/rules/r45_deleted.py", ["tests/unit/advice"]),
        (
            "gpuviz/advice/rules/r48_late_rank.py",
            [
                "tests/unit/merging/test_collectives.py",
                "tests/unit/report/test_same_conclusions.py",
            ],
        ),
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
    changed = ["gpuviz/advice/rules/r33_wider_type.py", "tests/unit/advice/programs.py"]

    assert affected(changed) == ["tests/unit/advice"]


def names(changed):
    """Return the names of the tests of advice that a file of the room affects."""
    return {path.removeprefix("tests/unit/advice/test_")[:-3] for path in affected([changed])}


def test_a_rule_affects_the_tests_that_name_it_or_are_named_after_it():
    affected_by_rule = names("gpuviz/advice/rules/r33_wider_type.py")

    assert {"wider_type", "wider_tables", "uploaded_doubles"} <= affected_by_rule
    assert not {"launch_bound", "schedule", "views_of_large_arrays"} & affected_by_rule


def test_what_only_a_rule_imports_affects_the_tests_of_the_rule():
    rule = names("gpuviz/advice/rules/r33_wider_type.py")

    assert names("gpuviz/advice/precision/promotion_steps.py") == rule


def test_what_a_test_imports_affects_it_and_what_all_findings_need_affects_almost_all():
    assert {"parsed_text", "conditions"} <= names("gpuviz/advice/source/parsed_text.py")
    assert names("gpuviz/advice/replay/schedule.py") >= names("gpuviz/advice/findings.py")
    assert len(names("gpuviz/advice/findings.py")) > 100


@pytest.mark.parametrize(
    ("changed", "checked"),
    [
        ("gpuviz/advice/findings.py", ["python"]),
        ("gpuviz/native/hazards/engine.cpp", ["python", "cpp"]),
        ("extension/src/view/drawer.ts", ["python", "typescript"]),
        ("scripts/static-checks", ["python", "cpp", "typescript"]),
        ("pyproject.toml", ["python", "cpp", "typescript"]),
    ],
)
def test_the_checks_of_a_language_are_run_if_what_they_read_differs(changed, checked):
    assert languages(["docs/index.md", changed]) == checked
