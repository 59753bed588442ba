"""Wheels built from this checkout, for tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

# The beginning of the name of a folder on PATH, with a `cmake` that does nothing.
NOTHING_TO_BUILD = "nothing-to-build-"


def stripped_core(folder: Path) -> Path:
    """Copy the core of the editable build, without what debuggers read, and return its path."""
    from gpuviz import _core  # builds what changed

    core = folder / Path(_core.__file__).name
    subprocess.run(["strip", "-o", core, _core.__file__], check=True)  # noqa: S607
    return core


def build_wheel(folder: Path, *defines: str) -> None:
    """Build a wheel in an isolated environment, without node and npm, with definitions of CMake.

    What it compiles and links is below `folder / "build"`.
    """
    programs = folder / "bin"
    programs.mkdir()
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        is_searched = place.is_dir() and not place.name.startswith(NOTHING_TO_BUILD)
        for program in place.iterdir() if is_searched else ():
            link = programs / program.name
            if program.name not in {"node", "nodejs", "npm", "npx"} and not link.is_symlink():
                link.symlink_to(program)
    settings = [f"build-dir={folder / 'build'}", *(f"cmake.define.{each}" for each in defines)]
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        str(folder),
        str(ROOT),
    ]
    command += [part for each in settings for part in ("-C", each)]
    environment = {**os.environ, "PATH": str(programs)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
