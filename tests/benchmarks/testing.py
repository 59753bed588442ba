"""Cost of the pytest plugin: at the start of pytest, and for each test with a limit."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

TESTS = 50
REPEATS = 5
PLUGIN = ("-p", "gpuviz.testing.plugin")
PROGRAM = """
import os
import pytest
import gpuviz

limit = pytest.mark.gpu_limit_memory("1 MiB") if "LIMITED" in os.environ else lambda test: test

@pytest.fixture
def gpuviz_simulated_gpu():
    return gpuviz.SimulatedGPU(real_time=False)

@pytest.mark.parametrize("number", range(int(os.environ["TESTS"])))
@limit
def test_it(number, gpuviz_simulated_gpu):
    for _ in range(100):
        gpuviz_simulated_gpu.empty(1 << 20)
"""


def rows() -> Iterator[tuple[str, str, str, bool]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "test_program.py")
        path.write_text("def test_it():\n    pass\n")
        start_ms = 1e3 * (least_s(path, PLUGIN) - least_s(path, ()))
        path.write_text(PROGRAM)
        limited, plain = (
            least_s(path, PLUGIN, TESTS=TESTS + 1, **given)
            - least_s(path, PLUGIN, TESTS=1, **given)
            for given in ({"LIMITED": 1}, {})
        )
        test_ms = 1e3 * (limited - plain) / TESTS
    yield "start of pytest with the plugin", "20 ms", f"{start_ms:.1f} ms", start_ms < 20
    yield "a test under gpu_limit_memory", "20 ms", f"{test_ms:.1f} ms", test_ms < 20


def least_s(path: Path, options: tuple[str, ...], **variables: int) -> float:
    """Return the shortest time of several runs of pytest."""
    given = {name: str(value) for name, value in variables.items()}
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **given}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(path)]
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True, cwd=path.parent)
        times.append(time.perf_counter() - began)
    return min(times)
