"""The pytest plugin on CuPy's memory."""

import pytest

pytest_plugins = ["pytester"]

PROGRAM = """
import cupy as cp
import pytest

kept = []

def keep(size):
    kept.append(cp.empty(size, cp.uint8))

@pytest.mark.gpu_limit_memory("64 MiB")
def test_within():
    cp.empty(32 << 20, cp.uint8)

@pytest.mark.gpu_limit_memory("16 MiB")
def test_over():
    cp.empty(32 << 20, cp.uint8)

@pytest.mark.gpu_limit_leaks("1 MiB")
def test_leak():
    keep(4 << 20)

@pytest.mark.gpu_limit_leaks("1 MiB")
def test_plans_are_no_leak():
    cp.fft.fft(cp.ones(1 << 21, cp.complex64))

@pytest.mark.gpu_limit_synchronizations(0)
@pytest.mark.gpu_limit_leaks("1 MiB")
def test_no_wait():
    cp.empty(1 << 20, cp.uint8).fill(1)

@pytest.mark.gpu_limit_synchronizations(0)
@pytest.mark.gpu_limit_leaks("1 MiB")
def test_wait():
    cp.cuda.get_current_stream().synchronize()

@pytest.mark.gpu_no_hazards
def test_ordered():
    array = cp.ones(1 << 20, cp.float32)
    stream = cp.cuda.Stream(non_blocking=True)
    stream.wait_event(cp.cuda.get_current_stream().record())
    with stream:
        array += 1
    stream.synchronize()

@pytest.mark.gpu_no_hazards
def test_unordered():
    array = cp.ones(1 << 20, cp.float32)
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        array += 1
    stream.synchronize()

def test_recording(gpuviz_recording):
    array = cp.ones(1 << 20, cp.float32)
    assert gpuviz_recording.peak().bytes >= array.nbytes
    assert gpuviz_recording.kernels().num_rows == 1
"""


def test_limits_judge_what_cupy_programs_do(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_program=PROGRAM)
    result = pytester.runpytest_subprocess("-rA", "-p", "gpuviz.testing.plugin", "--gpuviz")

    result.assert_outcomes(passed=5, failed=4)
    failed = ["test_over", "test_leak", "test_wait", "test_unordered"]
    result.stdout.fnmatch_lines_random([f"FAILED test_program.py::{name} *" for name in failed])
    result.stdout.fnmatch_lines(["*GPU memory of the test was 32.0 MiB at its peak*"])


@pytest.mark.gpu_limit_memory("3 MiB")
@pytest.mark.gpu_limit_leaks("0 B")
@pytest.mark.gpu_limit_synchronizations(0)
def test_an_operation_in_place_allocates_nothing_more_and_does_not_wait():
    import cupy as cp

    array = cp.zeros(1 << 19, cp.float32)
    array += 1
