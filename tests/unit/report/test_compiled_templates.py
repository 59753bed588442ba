"""Templates of pages that are compiled once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def viewer(folder: Path, **environment: str) -> str:
    """Return the text of a page that another process writes."""
    path = folder / "viewer.html"
    command = [sys.executable, "-m", "gpuviz", "viewer", "--force", "--output", str(path)]
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    variables = kept | {"PYTHONPYCACHEPREFIX": str(folder / "kept")} | environment
    subprocess.run(command, check=True, capture_output=True, env=variables)
    return path.read_text(encoding="utf-8")


@pytest.fixture
def kept(tmp_path):
    """Return a function that lists the templates that were kept."""
    return lambda: sorted((tmp_path / "kept").rglob("template_*"))


def test_templates_are_kept_beside_compiled_modules_and_made_anew_if_damaged(tmp_path, kept):
    first = viewer(tmp_path)
    compiled = {path: path.read_bytes() for path in kept()}
    for path in compiled:
        path.write_bytes(b"damaged")
    second = viewer(tmp_path)

    assert len(compiled) == 2
    assert second == first
    assert {path: path.read_bytes() for path in kept()} == compiled


def test_no_template_is_kept_where_python_must_not_write(tmp_path, kept):
    page = viewer(tmp_path, PYTHONDONTWRITEBYTECODE="1")

    assert page.startswith("<!doctype html>")
    assert kept() == []
