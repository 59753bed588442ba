"""Kernels that CuPy compiles: once in a new cache, and then loaded from it."""

import os
import subprocess
import sys

import pytest

import gpuviz

pytestmark = pytest.mark.gpu
PROGRAM = """
import cupy, sys, gpuviz
with gpuviz.record(sys.argv[1]):
    source = 'extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= 3; }'
    scale = cupy.RawKernel(source, "scale")
    x = cupy.ones(32, "f")
    scale((1,), (32,), (x,))
    scale((1,), (32,), (x,))
    cupy.cuda.Device().synchronize()
"""


def test_a_kernel_is_compiled_in_the_first_process_and_loaded_in_the_second(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = []
    for run in ("first", "second"):
        path = tmp_path / f"{run}.gpuviz"
        subprocess.run(
            [sys.executable, str(program), str(path)],
            env={**os.environ, "CUPY_CACHE_DIR": str(tmp_path / "cache")},
            check=True,
        )
        rows = gpuviz.load(path).compilations().to_pylist()
        found.append([row for row in rows if row["kernels"] == "scale"])

    ((compiled,), (loaded,)) = found
    assert not compiled["cached"]
    assert loaded["cached"]
    assert compiled["compile_ns"] > loaded["duration_ns"]
    assert "scale((1,), (32,), (x,))" in compiled["source"]
