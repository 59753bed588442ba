"""Links, pages and names of the documentation."""

import importlib
import inspect
import re
import subprocess
from functools import cache

import pytest

import gpuviz
from gpuviz.commands.cli import commands
from scripts import generate_reference, reference_names
from tests.documents import PAGES, ROOT, name_of

GENERATED = ROOT / "docs" / "reference" / "generated"
FILES = [*PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"))]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
reference_pages = cache(generate_reference.pages)
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and the site name them."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).replace("`", "") for head in heads]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in plain}


@pytest.mark.parametrize("page", FILES, ids=name_of)
def test_every_link_leads_somewhere(page):
    broken = []
    for path, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        target = (page.parent / path).resolve() if path else page
        if target.parent == GENERATED:
            if target.name not in reference_pages():
                broken.append(path)
        elif not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}")

    assert broken == []


def test_the_index_lists_every_page():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [each.relative_to(ROOT / "docs") for each in PAGES if each.parent != ROOT]
    listed = [each for each in pages if each.parent.name != "project" and each.stem != "index"]

    assert [str(each) for each in listed if f"({each})" not in index] == []
    assert [str(each) for each in listed if f"\n{each.with_suffix('')}\n" not in index] == []


def test_every_verb_is_in_the_reference():
    table = (ROOT / "docs" / "reference" / "command_line.md").read_text(encoding="utf-8")

    assert [verb for verb in commands.commands if f"\n| `{verb}" not in table] == []


def test_every_public_name_is_in_the_reference():
    assert reference_names.documented_names() == {*dir(gpuviz)} - {"__version__"}


def test_the_objects_that_public_names_return_are_in_the_reference():
    values = {name: module for module, names in reference_names.VALUES.items() for name in names}
    public = [getattr(gpuviz, name) for name in dir(gpuviz)]
    others = [getattr(importlib.import_module(module), name) for name, module in values.items()]
    classes = [each for each in (*public, *others) if inspect.isclass(each)]
    functions = [each for each in public if inspect.isfunction(each)]

    returned = [each.__annotations__.get("return") for each in functions]
    returned += [annotation for each in classes for annotation in returned_by(each)]
    texts = [getattr(each, "__name__", str(each)) for each in returned]
    found = {name for text in texts for name in re.findall(r"\w+", text)} & own_classes()

    assert found - {*dir(gpuviz), *values} == {"Dashboard"}  # a widget, to be displayed


def returned_by(kind):
    """Yield what the public members of a class return, as annotations."""
    hidden = reference_names.PLUMBING.get(kind.__name__, ())
    for name, member in inspect.getmembers(kind):
        function = getattr(member, "fget", getattr(member, "func", member))
        if not name.startswith("_") and name not in hidden and inspect.isfunction(function):
            yield function.__annotations__.get("return")


def own_classes():
    """Return the names of gpuviz's own classes."""
    texts = (each.read_text(encoding="utf-8") for each in (ROOT / "gpuviz").rglob("*.py"))
    return {name for text in texts for name in re.findall(r"^class (\w+)", text, re.MULTILINE)}


def test_every_public_name_has_code_that_runs_in_the_tests():
    # Objects that others return.
    returned = {"Diff", "Recorder", "RecorderStatus", "Recording"}
    pages = reference_names.example_pages()

    assert {name for name, used_in in pages.items() if not used_in} == returned


def test_every_variable_that_gpuviz_reads_is_in_the_reference():
    known = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    command = ["git", "grep", "-hoE", '"_?GPUVIZ_[A-Z_]+"', "--", "gpuviz", "cmake"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {each.strip('"') for each in found.splitlines()}

    assert {"GPUVIZ_RECORD", "GPUVIZ_ALLOC_CONF"} <= names
    assert {each for each in names if each.removeprefix("_") not in known} == set()


def test_every_column_with_a_time_or_a_size_has_its_unit():
    text = reference_pages()["tables.md"]

    assert "| `duration_ns` | `int64` | ns |" in text
    assert "| `saved_bytes` | `int64` | bytes |" in text
    assert "| `stack` | `uint32` |  | [stacks](#stacks) |" in text
