"""Runs the tests of what notebooks keep alive under other releases of IPython.

    python -m tests.ipython_releases 9.14 9.15 9.16 9.17 9.18

Each release is installed with its dependencies into a temporary folder, in front of the
environment's own. Exits with 1 if a test fails. Needs a package index and half a minute a release.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = "tests/unit/ownership/test_notebook_roots.py"


def passes(release: str) -> bool:
    """Return whether the tests pass under the last patch of a minor release of IPython."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder]
        subprocess.run([*pip, f"ipython~={release}.0"], check=True)
        environment = os.environ | {"PYTHONPATH": folder}
        tests = [sys.executable, "-m", "pytest", TESTS, "--quiet", "-p", "no:cacheprovider"]
        (installed,) = Path(folder).glob("ipython-*.dist-info")
        sys.stdout.write(f"{installed.stem} under Python {sys.version.split()[0]}\n")
        sys.stdout.flush()
        return subprocess.run(tests, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    results = [passes(release) for release in sys.argv[1:]]
    sys.exit(not results or not all(results))
