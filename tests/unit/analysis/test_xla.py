"""Programs of JAX: compilations, and iterations of one line that runs what was compiled."""

import random

import pytest

from gpuviz.advice.findings import findings
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.analysis import repeated_compilations
from gpuviz.analysis.first_runs import launched_first
from gpuviz.analysis.xla import threads_of_xla
from tests.unit.recording.from_activities import Timeline

MS = 1_000_000
RUNS, KERNELS = 12, ("fusion", "gemm", "reduce")


def jax(*, with_ranges=True, shapes=1, compilations=0, has_threads=False, blocks=64):
    """Return the recording of a program whose line runs a function that XLA compiled.

    It is compiled for each shape, or more often without another shape, as for a static argument;
    its kernels run on some blocks for the first shape, and more for others, or always on one. In
    threads of XLA, it tries a kernel at the end of each compilation, and copies an argument to the
    device after it.
    """
    timeline = Timeline()
    correlation, now = 0, MS
    for run in range(RUNS):
        if run < max(shapes, compilations):
            if with_ranges:
                add_range(timeline, "XlaCompile:#module=jit_update#", now, now + 100 * MS)
                # XLA's thread pool works on it.
                name = "XlaCompileBackend:#module=jit_update,program_id=1#"
                add_range(timeline, name, now + 1, now + 90 * MS, thread=9)
            if has_threads:
                correlation += 2
                tried, copied = now + 95 * MS, now + 100 * MS
                timeline.call(tried, tried + 10_000, thread=9, correlation=correlation - 1)
                timeline.kernel(tried + 20_000, tried + MS, "try", correlation=correlation - 1)
                timeline.call(copied, copied + 10_000, thread=8, correlation=correlation)
                timeline.copy(copied + 15_000, copied + 18_000, stream=2, correlation=correlation)
            now += 100 * MS
        if with_ranges:
            name = "XlaModule:#hlo_module=jit_update,program_id=1#"
            add_range(timeline, name, now, now + 3 * MS)
        for kernel in KERNELS:
            correlation += 1
            timeline.call(now, now + 10_000, line=7, correlation=correlation)
            launch = (1 if blocks == 1 else blocks * (min(run, shapes - 1) + 1), 32)
            timeline.kernel(now + 20_000, now + MS, kernel, correlation=correlation, launch=launch)
            now += MS
    timeline.add("devices", {"device": 0, "name": "GPU"})
    return timeline.recording(duration_ns=now + MS)


def add_range(timeline, name, time, end, thread=1):
    ids = len(timeline.rows.get("ranges", ())) + 1
    row = {"id": ids, "time": time, "end": end, "thread": thread, "kind": "nvtx"}
    timeline.add("ranges", row | {"name": timeline.text(name)})


def test_each_run_of_a_compiled_function_is_an_iteration():
    found = jax().iterations()

    assert found.num_rows == RUNS
    assert set(found["kernel_count"].to_pylist()) == {len(KERNELS)}
    # Without XLA, one line that launches kernels in turn may be one call of a library.
    assert jax(with_ranges=False).iterations().num_rows == 0


def called(libraries):
    """Return the recording of a program whose one line runs functions of a library."""
    timeline = Timeline()
    for number, library in enumerate(libraries, 1):
        timeline.call(100 * number, 100 * number + 10, line=5, library=library, correlation=number)
        timeline.kernel(100 * number + 20, 100 * number + 60, f"{number}", correlation=number)
    return timeline.recording(duration_ns=100 * (len(libraries) + 1))


def test_a_loop_of_a_library_has_the_order_of_its_call_stacks():
    libraries = ("attention", "norm", "head") * 20

    assert called(libraries).iterations().num_rows == 20
    # Without an order there is no loop.
    assert called(random.Random(1).choices(libraries, k=60)).iterations().num_rows == 0


def test_a_compilation_has_the_name_of_the_function_and_the_line_that_waits_for_it():
    recording = jax()

    (row,) = recording.compilations().to_pylist()
    assert (row["kernels"], row["compiler"], row["cached"]) == ("jit_update", "XLA", False)
    assert row["duration_ns"] == row["compile_ns"] == 100 * MS
    assert row["source"] == "line 7"
    assert jax(with_ranges=False).compilations().num_rows == 0


def test_the_time_of_a_compilation_is_warm_up():
    steady = jax().steady_state(0)

    assert steady.window_ns <= RUNS * len(KERNELS) * MS


@pytest.mark.parametrize(
    ("times", "title", "change"),
    [
        ({"shapes": 1}, "XLA compiled 1 function in 100 ms", "jax_compilation_cache_dir"),
        # Two shapes of batches, and one for evaluation.
        ({"shapes": 3}, "XLA compiled 3 functions in 300 ms", "jax_compilation_cache_dir"),
        ({"shapes": 10}, "`update` was compiled 10 times, in 1.00 s", "Pass arrays of one shape"),
        ({"compilations": 3}, "`update` was compiled 3 times, in 300 ms", "`static_argnames`"),
    ],
)
def test_what_is_compiled_once_is_kept_and_what_is_compiled_again_is_compiled_once(
    times, title, change
):
    (finding,) = [each for each in findings(jax(**times), small=True) if each.rule == "R47"]

    assert finding.title.startswith(title)
    assert change in finding.change


@pytest.mark.parametrize(
    ("compiled", "change"), [(3, "jax_compilation_cache_dir"), (10, "Pass arrays of one shape")]
)
def test_small_arrays_of_other_shapes_are_not_said_to_be_of_one_shape(compiled, change):
    recording = jax(shapes=compiled, blocks=1)

    (finding,) = [each for each in findings(recording, small=True) if each.rule == "R47"]

    assert change in finding.change


OPERATION, FUNCTION = "jax/_src/numpy/array_creation", "jax/_src/pjit"


def compiled_on(lines, library, *, others=()):
    """Return what is compiled again if lines run functions of one name through a file of JAX.

    Args:
        lines: The line of each compilation.
        library: The file.
        others: Lines that launch something else after each.
    """
    timeline, now = Timeline(), MS
    for number, line in enumerate(lines):
        add_range(timeline, "XlaCompile:#module=jit_full#", now, now + MS)
        called = [(line, library), *((each, "wrap") for each in others)]
        for place, (each, file) in enumerate(called, 1):
            now += 2 * MS
            correlation = number * len(called) + place
            timeline.call(now, now + 9, line=each, library=file, correlation=correlation)
            timeline.kernel(now + 10, now + MS, correlation=correlation)
        now += 2 * MS
    recording = timeline.recording(duration_ns=now)
    return [each.rows.tolist() for each in repeated_compilations.repeated_compilations(recording)]


def test_an_operation_for_the_shapes_of_many_arrays_is_not_compiled_again():
    assert compiled_on([7] * 10, OPERATION) == []
    assert compiled_on(range(7, 17), OPERATION, others=[5]) == []
    assert compiled_on([7] * 10, OPERATION, others=[5]) == [[*range(10)]]


def test_functions_of_one_name_are_those_of_each_line():
    assert compiled_on([7] * 10, FUNCTION) == [[*range(10)]]
    assert compiled_on(range(7, 17), FUNCTION) == []
    assert compiled_on([3, *[7] * 10], FUNCTION) == [[*range(1, 11)]]


@pytest.mark.parametrize("has_threads", [False, True])
def test_a_function_that_is_compiled_once_saves_the_time_of_the_other_compilations(has_threads):
    again = jax(compilations=5, has_threads=has_threads)
    once = jax(has_threads=has_threads)

    (finding,) = [each for each in findings(again) if each.rule == "R47"]

    assert finding.saved_ns == pytest.approx(again.duration_ns - once.duration_ns, rel=0.02)


def test_what_threads_of_xla_launch_ends_idle_time_of_the_compilation():
    steady = jax(compilations=5, has_threads=True).steady_state(0)

    # The first is warm-up until a kernel is tried, and from then on.
    assert steady.warm_up_ns[0] == pytest.approx(4 * MS, rel=0.05)
    # The others are none.
    assert steady.causes_ns["host"] == pytest.approx(4 * 99 * MS, rel=0.01)
    assert jax(has_threads=True).steady_state(0).causes_ns["host"] < MS


def test_a_native_thread_that_works_at_other_times_is_not_one_of_xla():
    timeline, correlation = Timeline(), 0
    add_range(timeline, "XlaCompile:#module=jit_update#", MS, 100 * MS)
    add_range(timeline, "XlaModule:#hlo_module=jit_update,program_id=1#", 100 * MS, 101 * MS)
    # Another thread tries a kernel, copies an argument, and one copies batches all the time.
    copied = {9: [90], 8: [101, 110], 7: range(5, 2000, 100)}
    for thread, times in {1: [100], **copied}.items():
        for time in times:
            correlation += 1
            line = {"line": 7} if thread == 1 else {}
            begin = time * MS
            timeline.call(begin, begin + 10_000, thread=thread, correlation=correlation, **line)
            timeline.copy(begin + 20_000, begin + MS, correlation=correlation)
    recording = timeline.recording(duration_ns=2000 * MS)

    assert threads_of_xla(recording) == {8: 1, 9: 1}


def test_a_thread_of_xla_that_makes_most_calls_is_its_caller_s():
    timeline = Timeline()
    add_range(timeline, "XlaCompile:#module=jit_update#", MS, 100 * MS)
    # The first call of the caller overlaps the last one of the other.
    tried = [(9, (10 + number) * MS, {}) for number in range(60)]
    own = [(1, (69 + 2 * number) * MS + 5_000, {"line": 7}) for number in range(37)]
    for number, (thread, time, line) in enumerate(tried + own, 1):
        timeline.call(time, time + 10_000, thread=thread, correlation=number, **line)
        timeline.kernel(time + 20_000, time + MS // 2, correlation=number)
    add_range(timeline, "Xla", 2 * MS, 3 * MS, thread=5)
    timeline.add("devices", {"device": 0, "name": "GPU"})
    costs = {"launch": (1_000, 2_000)}
    recording = timeline.recording(duration_ns=150 * MS, costs=costs)

    # The last range is that of a thread without calls.
    assert recording.recording_cost().cost_ns >= 0
    assert recording.compensated().tables["ranges"].num_rows == 2
    assert set(Schedule(recording).thread.tolist()) == {0}


def test_what_functions_launch_is_looked_up_once_for_all(monkeypatch):
    looked_up = []

    def counted(recording, compiled):
        looked_up.append(compiled.num_rows)
        return launched_first(recording, compiled)

    monkeypatch.setattr(repeated_compilations, "launched_first", counted)
    timeline, now = Timeline(), MS
    for correlation, name in enumerate(("update", "evaluate", "filter") * 4, 1):
        if name == "filter":
            add_range(timeline, name, now, now + MS)
            timeline.rows["ranges"][-1]["kind"] = "compile"
        else:
            add_range(timeline, f"XlaCompile:#module=jit_{name}#", now, now + MS)
            module = f"XlaModule:#hlo_module=jit_{name},program_id=1#"
            add_range(timeline, module, now + MS, now + 2 * MS)
        timeline.call(now + MS, now + MS + 10_000, line=7, correlation=correlation)
        timeline.kernel(
            now + MS + 20_000, now + 2 * MS, name, correlation=correlation, launch=(9, 9)
        )
        now += 2 * MS

    found = repeated_compilations.repeated_compilations(timeline.recording(duration_ns=now))

    assert [each.rows.tolist() for each in found] == [[0, 3, 6, 9], [1, 4, 7, 10]]
    assert looked_up == [8]
