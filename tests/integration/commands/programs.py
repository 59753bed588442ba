"""Runs programs by ``python`` and by ``gpuviz run``, and compares."""

import os
import re
import subprocess
import sysconfig
from pathlib import Path

GPUVIZ = Path(sysconfig.get_path("scripts"), "gpuviz")
# The interpreter's path in the installed script, which some messages contain. If the path contains
# a space, the script's first line starts a shell, the second one Python.
PYTHON = re.search(r"(?:#!|exec' \")(/[^\"\n]*python[^\"\n]*)", GPUVIZ.read_text())[1]
SIMULATED = """\
import sys, os, time
import gpuviz
gpu = gpuviz.SimulatedGPU(memory=1 << 30)

def step(size):
    array = gpu.empty(size)
    gpu.launch("step", writes=[array], duration=1e-4)
    gpu.null_stream.synchronize()
    return array
"""
# Waits until what was recorded is in a file, which happens several times a second.
UNTIL_WRITTEN = """\
from glob import glob
parts = "**/*.gpuviz.part"
while not any(gpuviz.load(part).peak().bytes for part in glob(parts, recursive=True)):
    time.sleep(0.01)
"""


def run(command, folder, *, text="", environment=None):
    """Return the completed process of a command in a folder."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        input=text,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def outcome(done):
    """Return exit code, stdout and stderr, without gpuviz's own lines."""
    lines = done.stderr.splitlines(keepends=True)
    return (
        done.returncode,
        done.stdout,
        "".join(line for line in lines if not line.startswith("gpuviz: ")),
    )


def said(done):
    """Return gpuviz's lines on stderr."""
    return [
        line.removeprefix("gpuviz: ")
        for line in done.stderr.splitlines()
        if line.startswith("gpuviz: ")
    ]
