"""Tests of this folder need a GPU; without one they are skipped, and the summary says how many."""

import ctypes
import importlib.util
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


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


@pytest.fixture(scope="module", autouse=True)
def _small_heap() -> None:
    """Leave the heap as it is: arrays and kernels of an earlier test have to be found."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if missing():
                item.add_marker(pytest.mark.skip(reason=missing()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    ours = [report for report in skipped if FOLDER in (ROOT / report.location[0]).parents]
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in ours)
    for reason, count in reasons.items():
        terminalreporter.write_line(f"{count} GPU tests skipped: {reason}")
