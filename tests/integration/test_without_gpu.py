"""gpuviz without a driver, and without CuPy.

Each test runs a separate program in which the driver cannot be opened.
"""

import json
import subprocess
import sys

import pytest

NO_DRIVER = """
import json, sys, gpuviz
from gpuviz import _core
from gpuviz.errors import DeviceUnavailableError

class NoDriver:
    @staticmethod
    def open():
        raise _core.DeviceError("No NVIDIA driver: libcuda.so.1 was not found.")

_core.CudaDriver = NoDriver

def message(call):
    try:
        call()
    except DeviceUnavailableError as error:
        return str(error)
"""
NO_CUPY = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"cupy", "cupyx", "cupy_backends"}:
            raise ImportError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Blocker())
"""
DRIVER_MISSING = (
    "No NVIDIA driver: libcuda.so.1 was not found. "
    "Loading recordings, reports, gpuviz.SimulatedGPU and `gpuviz demo` work without a GPU."
)
CUPY_MISSING = (
    "CuPy cannot be imported (cupy is blocked): "
    "`pip install 'cupy-cuda13x[ctk]>=14' 'cuda-toolkit[cupti]==13.*'`. "
    "Loading recordings, reports and `gpuviz demo` work without it."
)
NEED_A_DRIVER = [
    "gpuviz.mem_get_info()",
    "gpuviz.list_gpu_processes()",
    "gpuviz.MemPool()",
    "gpuviz.set_per_process_memory_fraction(0.5)",
    "gpuviz.caching_allocator_alloc(10)",
]


def printed(program):
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout.splitlines()[-1])


def messages(calls, *, before=""):
    texts = ", ".join(f"message(lambda: {call})" for call in calls)
    return printed(f"{before}{NO_DRIVER}print(json.dumps([{texts}]))")


def test_what_needs_a_driver_says_that_it_is_missing_and_what_works():
    recorders = ["gpuviz.record()", "gpuviz.record(allocator='observe')", "gpuviz.malloc(10)"]
    calls = [*recorders, *NEED_A_DRIVER]

    assert messages(calls) == [DRIVER_MISSING] * len(calls)


def test_what_needs_cupy_says_that_it_is_missing_and_what_works():
    assert messages(["gpuviz.malloc(10)"], before=NO_CUPY) == [CUPY_MISSING]


def test_without_driver_and_cupy_the_driver_is_missed_first():
    calls = ["gpuviz.record()", "gpuviz.record(allocator='observe')", *NEED_A_DRIVER]

    assert messages(calls, before=NO_CUPY) == [DRIVER_MISSING] * len(calls)


@pytest.mark.parametrize("before", ["", NO_CUPY], ids=["with CuPy", "without CuPy"])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("help(gpuviz)", None),
        ("'record' in dir(gpuviz)", True),
        ("gpuviz.memory_stats()", {}),
        ("gpuviz.memory_stats_as_nested_dict()", {}),
        ("gpuviz.memory_allocated()", 0),
        ("gpuviz.memory_snapshot()", []),
        ("gpuviz.get_per_process_memory_fraction()", 1.0),
        ("gpuviz.set_allocator_settings('max_split_size_mb:40')", None),
        ("gpuviz.empty_cache()", None),
    ],
)
def test_what_needs_neither_works_and_imports_no_cupy(call, expected, before):
    program = (
        f"{before}{NO_DRIVER}value = {call}\nprint(json.dumps([value, 'cupy' in sys.modules]))"
    )

    assert printed(program) == [expected, False]
