"""Kernels that CuPy and Numba compile: once in a new cache, and then loaded from it."""

import os
import subprocess
import sys

import pytest

import gpuviz
from tests.gpu.library_processes import COMPILES, needs

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


NUMBA = """
import cupy, sys, gpuviz
from numba import cuda
with gpuviz.record(sys.argv[1]):
    from kernels import scale
    x = cuda.device_array(32, "f4")
    scale[1, 32](x)
    scale[1, 32](x)
    cuda.synchronize()
"""
KERNELS = """
from numba import cuda

@cuda.jit(cache=True)
def scale(x):
    x[cuda.threadIdx.x] = 3
"""


@needs("numba")
@COMPILES
def test_a_kernel_of_numba_is_compiled_in_the_first_process_and_loaded_in_the_second(tmp_path):
    (tmp_path / "program.py").write_text(NUMBA)
    (tmp_path / "kernels.py").write_text(KERNELS)
    found = []
    for run in ("first", "second"):
        path = tmp_path / f"{run}.gpuviz"
        subprocess.run(
            [sys.executable, "program.py", str(path)],
            cwd=tmp_path,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            check=True,
        )
        rows = gpuviz.load(path).compilations().to_pylist()
        found.append([row for row in rows if row["kernels"] == "scale"])

    ((compiled,), (loaded,)) = found
    assert compiled["compiler"] == "Numba"
    assert loaded["cached"]
