"""The documentation site, built for tests."""

import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT


def build_site(folder: Path) -> None:
    """Build the site in the folder ``html`` of a folder, without a warning."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", folder / "state"]
    done = subprocess.run(
        [*map(str, command), str(ROOT / "docs"), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
