"""Ranges around what CuPy's compiler does."""

import sys
from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz.frameworks.cupy_compilation import watch_compilations

ADD = 'extern "C" __global__ void cupy_add(const float* x, float* y, int n) {}'
MANY = "".join(f"__global__ void step_{number}(float* x) {{}}\n" for number in range(5))


@pytest.fixture
def cupy():
    """CuPy's functions as its version 14 has them, with a cache in memory."""
    compiler = SimpleNamespace(cache={}, frames=[])

    def compile_using_nvrtc(source, *_):
        compiler.frames.append(sys._getframe(1).f_code.co_name)
        if "#error" in source:
            raise ValueError("it cannot be compiled")
        return source

    def compile_module(source, options=()):
        if source not in compiler.cache:
            compiler.cache[source] = compiler._compile_using_nvrtc_no_warning(source, options)
        return compiler.cache[source]

    compiler._compile_using_nvrtc_no_warning = compile_using_nvrtc
    compiler._compile_module_with_cache = compile_module
    found = SimpleNamespace(cuda=SimpleNamespace(compiler=compiler))
    watch_compilations.__wrapped__(found)
    return found


def compiled(cupy, *sources):
    """Return the rows of a recording in which sources are compiled or loaded."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        for source in sources:
            assert cupy.cuda.compiler._compile_module_with_cache(source) == source
    return recorder.recording.compilations().to_pylist()


def test_a_source_is_compiled_once_and_then_loaded(cupy):
    rows = compiled(cupy, ADD, ADD)

    assert [(row["kernels"], row["cached"]) for row in rows] == [
        ("cupy_add", False),
        ("cupy_add", True),
    ]


def test_a_module_is_called_what_its_first_kernels_are_called(cupy):
    (several, none) = compiled(cupy, MANY, "// __global__ void gone() {}")

    assert several["kernels"] == "step_0, step_1, step_2 and 2 more"
    assert none["kernels"] == "a module"


def test_the_compiler_s_error_reaches_the_program_and_the_range_ends(cupy):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        with pytest.raises(ValueError, match="it cannot be compiled"):
            cupy.cuda.compiler._compile_module_with_cache("#error")
        gpu.work_on_host(1e-3)

    (row,) = recorder.recording.compilations().to_pylist()
    assert row["duration_ns"] == 0
    assert all(each["end"] >= 0 for each in recorder.recording.table("ranges").to_pylist())


def test_no_frame_of_gpuviz_is_between_the_program_and_the_compiler(cupy):
    compiled(cupy, ADD)

    assert cupy.cuda.compiler.frames == ["compile_module"]


def test_without_a_recording_the_program_compiles_as_ever(cupy):
    assert cupy.cuda.compiler._compile_module_with_cache(ADD, options=("-O3",)) == ADD


def test_a_compiler_of_another_version_is_left_alone():
    compiler = SimpleNamespace()

    watch_compilations.__wrapped__(SimpleNamespace(cuda=SimpleNamespace(compiler=compiler)))

    assert vars(compiler) == {}
