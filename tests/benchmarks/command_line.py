"""Time of short commands: an empty program, and the report of a small snapshot."""

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from gpuviz.exports import torch_export
from tests.benchmarks.report import recorded
from tests.conftest import path_with_nothing_to_build

LIMIT_MS, REPORT_MS = 300, 250
EVENTS = 1000
RUNS = 15


def as_installed(folder: Path) -> dict[str, str]:
    """Return an environment in which an editable gpuviz starts as fast as an installed one.

    The first run compiles its modules, as an installation does, and none looks for changed sources.
    """
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PATH": path_with_nothing_to_build(folder)}


def milliseconds(command: list[str], folder: str, environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return 1000 * (time.perf_counter() - begun)


def rows() -> list[tuple[str, str, str, bool]]:
    gpuviz = str(Path(sysconfig.get_path("scripts"), "gpuviz"))
    commands = ([sys.executable, "nothing.py"], [gpuviz, "run", "nothing.py"])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nothing.py").write_text("pass\n")
        environment = as_installed(Path(folder))
        # Alternating, so that both run under the same conditions.
        pairs = [
            [milliseconds(command, folder, environment) for command in commands]
            for _ in range(RUNS)
        ]
        torch_export.write(recorded(EVENTS), Path(folder, "snapshot.pickle"))
        report = [gpuviz, "report", "snapshot.pickle", "-o", "report.html", "--force"]
        reports = [milliseconds(report, folder, environment) for _ in range(RUNS)]
    more = [after - before for before, after in pairs]
    median = statistics.median(more)
    measured = f"{median:.0f} ms (at least {min(more):.0f} ms)"
    least, middle = min(reports), statistics.median(reports)
    written = f"{least:.0f} ms (median {middle:.0f} ms)"
    what = f"gpuviz report of a torch snapshot of {EVENTS:,} events"
    return [
        ("gpuviz run, nothing to do", f"+{LIMIT_MS} ms", f"+{measured}", median <= LIMIT_MS),
        (what, f"{REPORT_MS} ms", written, middle <= REPORT_MS),
    ]
