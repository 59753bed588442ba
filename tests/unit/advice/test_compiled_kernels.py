"""R47: the program waits while CuPy compiles its kernels."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.timed_programs import found, saved_ns, timed
from tests.unit.recording.from_activities import Timeline

STEPS = 20
MS = 1_000_000


def steps(gpu, *, compiled, names=1, cached=False, blocks=(1, 0)):
    """Launch kernels of some names in turn; those numbered ``compiled`` are compiled before."""
    gpu.synchronize()
    for step in range(STEPS):
        name = f"filter_{step % names}"
        if step in compiled:
            gpu.compile(name, duration=20e-6 if cached else 5e-3, cached=cached)
        gpu.launch(name, duration=1e-3, grid=(blocks[0] + blocks[1] * step,))
        gpu.synchronize()


def compiles_each_once(gpu):
    steps(gpu, compiled=range(3), names=3)


def loads_each_once(gpu):
    steps(gpu, compiled=range(3), names=3, cached=True)


def writes_values_into_the_source(gpu):
    steps(gpu, compiled=range(STEPS))


def passes_values_as_arguments(gpu):
    steps(gpu, compiled=[0])


def tries_before_it_iterates(gpu):
    """Compile the kernel for other values first, and then in each iteration."""
    gpu.synchronize()
    for _ in range(10):
        gpu.compile("filter_0", duration=5e-3)
        gpu.launch("filter_0", duration=1e-3)
        gpu.launch("try", duration=1e-3)
    for _ in range(STEPS):
        gpu.compile("filter_0", duration=5e-3)
        gpu.launch("filter_0", duration=1e-3)
        gpu.launch("step", duration=20e-3)
        gpu.synchronize()


def writes_five_values_into_the_source(gpu):
    steps(gpu, compiled=range(0, STEPS, 4), blocks=(64, 0))


def passes_five_values_as_arguments(gpu):
    steps(gpu, compiled=[0], blocks=(64, 0))


def compiles_for_five_shapes(gpu):
    steps(gpu, compiled=range(0, STEPS, 4), blocks=(64, 1))


def compiles_for_five_small_shapes(gpu):
    steps(gpu, compiled=range(0, STEPS, 4))


def compiles_five_names(gpu):
    steps(gpu, compiled=range(5), names=5, blocks=(64, 0))


def compiles_for_each_type_of_one_shape(gpu):
    steps(gpu, compiled=range(4), blocks=(64, 0))


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

    assert finding.title == "CuPy compiled 3 modules of kernels in 15.0 ms."
    assert finding.saved_ns == pytest.approx(saved_ns(compiles_each_once, loads_each_once), rel=0.1)
    assert [line.source for line in finding.lines] == [
        "gpu.launch(name, duration=1e-3, grid=(blocks[0] + blocks[1] * step,))"
    ]
    assert found(loads_each_once, "R47") == []


def test_a_source_that_changes_is_compiled_once_if_the_values_are_arguments():
    (finding,) = found(writes_values_into_the_source, "R47")

    assert finding.title == "`filter_0` was compiled 20 times, in 100 ms."
    assert finding.saved_ns == pytest.approx(
        saved_ns(writes_values_into_the_source, passes_values_as_arguments), rel=0.1
    )
    assert finding.certainty == "possible"
    assert finding.change.startswith("If values are written into its source, pass them as argument")


def test_a_source_that_changes_in_each_round_of_a_short_loop_is_no_warm_up():
    finding = findings(timed(writes_five_values_into_the_source))[0]

    assert finding.title == "`filter_0` was compiled 5 times, in 25.0 ms."
    assert "launches the same kernel on as many thread blocks" in finding.reason
    assert finding.change.startswith("If values are written into its source, pass them as argument")
    assert not finding.is_of_warm_up
    assert finding.saved_ns == pytest.approx(
        saved_ns(writes_five_values_into_the_source, passes_five_values_as_arguments), rel=0.1
    )


@pytest.mark.parametrize(
    "program",
    [
        compiles_for_each_type,
        compiles_for_each_type_of_one_shape,
        compiles_for_five_shapes,
        compiles_for_five_small_shapes,
        compiles_five_names,
        compiles_a_kernel_of_cupy_for_each_shape,
    ],
)
def test_what_may_differ_in_its_types_is_not_said_to_differ_in_its_values(program):
    (finding,) = found(program, "R47")

    assert finding.title.startswith("CuPy compiled")
    assert "CUPY_CACHE_DIR" in finding.change


def test_compiling_while_the_gpu_works_saves_nothing():
    assert found(compiles_while_the_gpu_works, "R47") == []


def test_time_for_compiling_is_not_said_to_be_the_program_s():
    assert found(writes_values_into_the_source, "R43") == []


def launches(timeline, times, **columns):
    """Launch a short kernel at some times, in ms."""
    for time in times:
        begin, number = time * MS, len(timeline.rows.get("api_calls", ())) + 1
        timeline.call(begin, begin + 10_000, correlation=number, **columns)
        timeline.kernel(begin + 20_000, begin + MS, correlation=number)


def compiles(timeline, compiler, *, begin, end, thread=1):
    """Compile a kernel ``update`` from one time to another, in ms."""
    ids = len(timeline.rows.get("ranges", ())) + 1
    row = {"time": begin * MS, "end": end * MS, "thread": thread}
    names = {"load": "update", "compile": "Numba" if compiler == "Numba" else "update"}
    for number, (kind, text) in enumerate(names.items()):
        own = {"id": ids + number, "parent": ids * number, "kind": kind}
        timeline.add("ranges", row | own | {"name": timeline.text(text)})


def test_what_is_compiled_before_the_iterations_is_no_part_of_their_time():
    recording = timed(tries_before_it_iterates)
    (finding,) = [each for each in findings(recording, small=True) if each.rule == "R47"]

    assert finding.title.startswith("`filter_0` was compiled 30 times")
    assert 0 < finding.saved_ns < finding.working_ns
    assert finding.saved_ns <= STEPS * 5 * MS


def test_kernels_of_one_name_are_those_of_each_compiler():
    timeline = Timeline()
    timeline.add("devices", {"device": 0, "name": "GPU"})
    for number in range(9):
        launches(timeline, [10 * number], line=7)
        compiler = "CuPy" if number else "Numba"
        compiles(timeline, compiler, begin=10 * number + 2, end=10 * number + 8)
    launches(timeline, [90], line=7)
    recording = timeline.recording(duration_ns=100 * MS)

    again, once = [each for each in findings(recording, small=True) if each.rule == "R47"]

    assert again.title.startswith("`update` was compiled 8 times, in 48.0 ms")
    assert once.title.startswith("Numba compiled 1 kernel in 6.00 ms")


def test_kernels_of_one_name_on_many_lines_may_be_different_ones():
    """Such as those of CuPy's `ElementwiseKernel`, if the program does not name them."""
    timeline = Timeline()
    timeline.add("devices", {"device": 0, "name": "GPU"})
    for number in range(9):
        compiles(timeline, "CuPy", begin=10 * number + 2, end=10 * number + 8)
        launches(timeline, [10 * number + 9], line=number)
    recording = timeline.recording(duration_ns=100 * MS)

    (finding,) = [each for each in findings(recording, small=True) if each.rule == "R47"]

    assert finding.title.startswith("CuPy compiled 9 modules of kernels in 54.0 ms")


@pytest.mark.parametrize("launched", [[], [805]])
def test_what_another_thread_compiles_saves_no_time_of_this_one(launched):
    timeline = Timeline()
    timeline.add("devices", {"device": 0, "name": "GPU"})
    launches(timeline, range(0, 1000, 10), line=7)
    compiles(timeline, "CuPy", begin=3, end=803, thread=2)
    launches(timeline, launched, thread=2, line=9)
    recording = timeline.recording(duration_ns=1000 * MS)

    saved = [each.saved_ns for each in findings(recording, small=True) if each.rule == "R47"]

    # Since the other thread's call before.
    assert sum(saved) <= 10 * MS
