"""What is called back after imports, which `gpuviz run` and the recorder both watch."""

import importlib
import sys

import pytest

from gpuviz.commands.startup.sitecustomize import ImportWatcher


@pytest.fixture
def watched(monkeypatch, tmp_path):
    """Return the calls of two watchers of the modules ``first`` and ``second``, not imported."""
    for name in ("first", "second"):
        (tmp_path / f"imported_{name}.py").write_text("import sys\nsys.ran.append(__name__)\n")
        monkeypatch.delitem(sys.modules, f"imported_{name}", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    calls = []
    monkeypatch.setattr(sys, "ran", calls, raising=False)
    names = ("imported_first", "imported_second")
    watchers = [
        ImportWatcher(names, lambda name, number=number: calls.append((number, name)))
        for number in (1, 2)
    ]
    monkeypatch.setattr(sys, "meta_path", [*watchers, *sys.meta_path])
    return calls


def test_two_watchers_of_a_module_are_called_once_each_after_it_ran(watched):
    importlib.import_module("imported_second")
    importlib.import_module("imported_first")

    assert watched == [
        "imported_second",
        (2, "imported_second"),
        (1, "imported_second"),
        "imported_first",
        (2, "imported_first"),
        (1, "imported_first"),
    ]


def test_a_module_that_does_not_exist_is_not_found(watched):
    with pytest.raises(ModuleNotFoundError, match="imported_third"):
        importlib.import_module("imported_third")

    assert watched == []
