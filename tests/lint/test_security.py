"""Every promise of SECURITY.md names a test that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PROMISES = re.findall(r"^- .*(?:\n  .*)*", TEXT, re.MULTILINE)


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_names_its_tests(promise):
    assert TEST.search(promise)


@pytest.mark.parametrize(("path", "name"), TEST.findall(TEXT))
def test_a_named_test_exists(path, name):
    module = ast.parse((ROOT / path).read_text(encoding="utf-8"))

    assert name in {each.name for each in module.body if isinstance(each, ast.FunctionDef)}
