"""Time of short commands: an empty program, and the report of a small snapshot."""

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from gpuviz.formats import torch_snapshot
from tests.benchmarks.report import recorded

LIMIT_MS, REPORT_MS = 300, 250
EVENTS = 1000
RUNS = 15


# Installed packages are compiled, so the first run compiles an editable one as well.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def milliseconds(command: list[str], folder: str) -> float:
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)
    return 1000 * (time.perf_counter() - begun)


def rows() -> list[tuple[str, str, str, bool]]:
    gpuviz = str(Path(sysconfig.get_path("scripts"), "gpuviz"))
    commands = ([sys.executable, "nothing.py"], [gpuviz, "run", "nothing.py"])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nothing.py").write_text("pass\n")
        # Alternating, so that both run under the same conditions.
        pairs = [[milliseconds(command, folder) for command in commands] for _ in range(RUNS)]
        torch_snapshot.write(recorded(EVENTS), Path(folder, "snapshot.pickle"))
        report = [gpuviz, "report", "snapshot.pickle", "-o", "report.html", "--force"]
        reports = [milliseconds(report, folder) for _ in range(RUNS)]
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
