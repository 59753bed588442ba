"""Runs programs by ``python`` and by ``gpuviz run``, and compares."""

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import gpuviz
from gpuviz.frameworks.shared_pool import has_driver
from tests.native.compilation import compile_cupti

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
_IMITATED_DRIVER = Path(__file__).parents[2] / "imitated_driver.c"


def imitated_cuda(folder):
    """Compile a driver and a CUPTI that need no GPU in a folder, and return it."""
    compile_cupti(folder)
    driver = folder / "libcuda.so.1"
    compile_c = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{driver.name}", "-o", driver]
    subprocess.run([*compile_c, _IMITATED_DRIVER], check=True)
    return folder


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


def names(folder):
    """Return the names of the recordings in a folder, and of those that are not complete."""
    return sorted(path.name for path in folder.iterdir() if ".gpuviz" in path.name)


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


WITH_CUPY = (
    "nothing was recorded: the program allocated nothing with CuPy"
    if has_driver()
    else "not recorded: no NVIDIA driver found (libcuda.so.1 is missing)"
)
TWO_STEPS = f"{SIMULATED}kept = [step(1234567), step(7654321)]\nprint('done')\n"


def requested(path):
    recording = gpuviz.load(path)
    sizes = recording.table("memory_events")["requested_size"].to_pylist()
    actions = recording.table("memory_events")["action"].to_pylist()
    return [size for size, action in zip(sizes, actions, strict=True) if action == "alloc"]
