"""The code blocks of the documentation that need a GPU, each page in a process of its own."""

import importlib.util
import subprocess
import sys

import pytest

from tests.documents import PAGES, ROOT, blocks_of, name_of

LIBRARIES = {"torch": "torch", "numba": "numba", "distributed": "cluster"}
WITH_GPU = [page for page in PAGES if any("gpu" in each.needs for each in blocks_of(page))]


@pytest.mark.parametrize("page", WITH_GPU, ids=name_of)
def test_the_code_of_a_page_runs_on_a_gpu(page):
    has = [has for library, has in LIBRARIES.items() if importlib.util.find_spec(library)]
    command = [sys.executable, "-m", "tests.documentation", str(page), "gpu", *has]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )

    assert not done.stderr, done.stderr
    assert done.returncode == 0
