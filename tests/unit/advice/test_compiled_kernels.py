"""R47: the program waits while CuPy compiles its kernels."""

import pytest

from tests.unit.advice.timed_programs import found, saved_ns

STEPS = 20


def steps(gpu, *, compiled, names=1, cached=False):
    """Launch kernels of some names in turn; those numbered ``compiled`` are compiled before."""
    gpu.synchronize()
    for step in range(STEPS):
        name = f"filter_{step % names}"
        if step in compiled:
            gpu.compile(name, duration=20e-6 if cached else 5e-3, cached=cached)
        gpu.launch(name, duration=1e-3)
        gpu.synchronize()


def compiles_each_once(gpu):
    steps(gpu, compiled=range(3), names=3)


def loads_each_once(gpu):
    steps(gpu, compiled=range(3), names=3, cached=True)


def writes_values_into_the_source(gpu):
    steps(gpu, compiled=range(STEPS))


def passes_values_as_arguments(gpu):
    steps(gpu, compiled=[0])


def compiles_for_each_type(gpu):
    steps(gpu, compiled=range(4))


def compiles_a_kernel_of_cupy_for_each_shape(gpu):
    gpu.synchronize()
    for _ in range(STEPS):
        gpu.compile("cupy_add__float32_float32_float32", duration=5e-3)
        gpu.launch("cupy_add__float32_float32_float32", duration=1e-3)


def compiles_while_the_gpu_works(gpu):
    gpu.launch("long", duration=1.0)
    steps(gpu, compiled=[0])


def test_kernels_that_are_compiled_are_found_and_a_run_with_a_full_cache_is_as_much_faster():
    (finding,) = found(compiles_each_once, "R47")

    assert finding.title == "CuPy compiled 3 modules of kernels: 15.0 ms, 43 % of the time."
    assert finding.saved_ns == pytest.approx(saved_ns(compiles_each_once, loads_each_once), rel=0.1)
    assert [line.source for line in finding.lines] == ["gpu.launch(name, duration=1e-3)"]
    assert found(loads_each_once, "R47") == []


def test_a_source_that_changes_is_compiled_once_if_the_values_are_arguments():
    (finding,) = found(writes_values_into_the_source, "R47")

    assert finding.title == "`filter_0` was compiled 20 times: 100 ms, 83 % of the time."
    assert finding.saved_ns == pytest.approx(
        saved_ns(writes_values_into_the_source, passes_values_as_arguments), rel=0.1
    )
    assert finding.certainty == "possible"
    assert finding.change.startswith("If values are written into its source, pass them as argument")


@pytest.mark.parametrize(
    "program", [compiles_for_each_type, compiles_a_kernel_of_cupy_for_each_shape]
)
def test_what_may_differ_in_its_types_is_not_said_to_differ_in_its_values(program):
    (finding,) = found(program, "R47")

    assert finding.title.startswith("CuPy compiled")
    assert "CUPY_CACHE_DIR" in finding.change


def test_compiling_while_the_gpu_works_saves_nothing():
    assert found(compiles_while_the_gpu_works, "R47") == []


def test_time_for_compiling_is_not_said_to_be_the_program_s():
    assert found(writes_values_into_the_source, "R43") == []
