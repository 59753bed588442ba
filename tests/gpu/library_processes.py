"""Processes of programs that use a library, which may be missing."""

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import gpuviz

ROOT = Path(__file__).parents[2]
MODULES = {"torch": "torch", "numba": "numba_cuda", "cuda_core": "cuda.core", "rmm": "rmm"}


def has(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def needs(name):
    return pytest.mark.skipif(not has(MODULES[name]), reason=f"no {MODULES[name]}")


def numba_compiles():
    """Return whether the installed numba-cuda and NumPy work together."""
    import numpy as np

    found = importlib.util.find_spec("numba_cuda") if has("numba_cuda") else None
    if found is None or found.origin is None or hasattr(np, "row_stack"):
        return True
    arrays = Path(found.origin).parent / "numba" / "cuda" / "np" / "arrayobj.py"
    return "np.row_stack" not in arrays.read_text()


COMPILES = pytest.mark.skipif(
    not numba_compiles(), reason="numba-cuda needs numpy.row_stack, which NumPy has removed"
)


def frameworks(*names):
    return pytest.mark.parametrize("name", [pytest.param(n, marks=needs(n)) for n in names])


def python(*arguments, **environment):
    import os

    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def run(program, **environment):
    """Return what a program prints and what it writes to stderr."""
    done = python("-c", textwrap.dedent(program), **environment)
    return done.stdout.strip(), done.stderr.strip()


def gpuviz_run(folder, program, *options):
    """Return the recording of a program under ``gpuviz run``, and what was written to stderr."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    recording = folder / "run.gpuviz"
    done = python("-m", "gpuviz", "run", *options, "-o", str(recording), str(path))
    return gpuviz.load(recording), done.stderr


def allocated_sizes(recording):
    events = recording.table("memory_events").to_pylist()
    return [row["requested_size"] for row in events if row["action"] == "alloc"]


def owners(recording):
    events = recording.table("memory_events").to_pylist()
    return [row["framework"] for row in events if row["action"] == "alloc"]
