"""Overhead of ``gpuviz run`` for an empty program."""

import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

LIMIT_MS = 300
RUNS = 15


def milliseconds(command: list[str], folder: str) -> float:
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - begun)


def rows() -> list[tuple[str, str, str, bool]]:
    gpuviz = str(Path(sysconfig.get_path("scripts"), "gpuviz"))
    commands = ([sys.executable, "nothing.py"], [gpuviz, "run", "nothing.py"])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nothing.py").write_text("pass\n")
        # Alternating, so that both run under the same conditions.
        pairs = [[milliseconds(command, folder) for command in commands] for _ in range(RUNS)]
    more = [after - before for before, after in pairs]
    median = statistics.median(more)
    measured = f"{median:.0f} ms (at least {min(more):.0f} ms)"
    return [("gpuviz run, nothing to do", f"+{LIMIT_MS} ms", f"+{measured}", median <= LIMIT_MS)]
