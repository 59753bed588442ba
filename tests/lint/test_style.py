"""Style rules that no linter checks, for sources other than Python."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".cpp", ".hpp", ".ts", ".mjs", ".css", ".cmake"}
SOURCES = sorted(
    path
    for folder in ("gpuviz", "extension/src", "tests", "notebooks", "cmake")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in SUFFIXES and "static" not in path.parts and "labextension" not in path.parts
)
# Split words, so that this file does not contain them.
LEFT_OVER = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_source_leaves_work_for_later():
    assert len(SOURCES) > 10
    assert [relative(path) for path in SOURCES if LEFT_OVER.search(path.read_text())] == []


def test_no_file_is_a_catch_all():
    names = {"utils", "helpers", "common", "misc", "util", "helper"}

    assert [relative(path) for path in SOURCES if path.stem in names] == []
