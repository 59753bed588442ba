"""The types that a program sees which uses gpuviz."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("typed_program.py")


def run(folder, *command):
    found = subprocess.run(
        [sys.executable, *command], check=False, cwd=folder, capture_output=True, text=True
    )
    return found.stdout, found.stderr


def test_a_program_that_uses_the_public_names_is_typed_strictly(tmp_path):
    options = ("--strict", "--config-file=", "--cache-dir", tmp_path)

    assert run(tmp_path, "-m", "mypy", *options, PROGRAM)[0] == (
        "Success: no issues found in 1 source file\n"
    )


def test_that_program_runs(tmp_path):
    assert run(tmp_path, PROGRAM) == ("", "<Diff: no difference>\n")
