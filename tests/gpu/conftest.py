"""Tests of this folder need a GPU; without one they are skipped, and the summary says how many."""

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
SKIPPED = pytest.StashKey[int]()


@cache
def missing() -> str:
    """Return what this machine lacks, or an empty text."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no GPU"
    if driver.cuInit(0) != 0:
        return "no GPU"
    return "" if importlib.util.find_spec("cupy") else "no CuPy"


def pytest_collection_modifyitems(
    config: pytest.Config,
    items: list[pytest.Item],
) -> None:
    here = [item for item in items if FOLDER in item.path.parents]
    for item in here:
        item.add_marker(pytest.mark.gpu)
        if missing():
            item.add_marker(pytest.mark.skip(reason=missing()))
    config.stash[SKIPPED] = len(here) if missing() else 0


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter,
    config: pytest.Config,
) -> None:
    count = config.stash.get(SKIPPED, 0)
    if count:
        terminalreporter.write_line(f"{count} GPU tests skipped: {missing()}")
