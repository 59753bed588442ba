"""Time of ``import gpuviz`` in a fresh interpreter."""

import statistics
import subprocess
import sys

LIMIT_MS = 100
RUNS = 9

# An editable install checks for changed sources first, unless this is disabled.
CODE = """
import os, sys, time
paths = [str(getattr(finder, "path", "")) for finder in sys.meta_path]
os.environ["SKBUILD_EDITABLE_SKIP"] = os.pathsep.join(paths)
start = time.perf_counter()
import gpuviz
print(time.perf_counter() - start)
"""


def milliseconds() -> float:
    command = [sys.executable, "-c", CODE]
    runs = [
        subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(RUNS)
    ]
    return 1000 * statistics.median(float(run.stdout) for run in runs)


def rows() -> list[tuple[str, str, str, bool]]:
    measured = milliseconds()
    return [("import gpuviz", f"{LIMIT_MS} ms", f"{measured:.0f} ms", measured <= LIMIT_MS)]
