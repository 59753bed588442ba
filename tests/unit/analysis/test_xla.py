"""Programs of JAX: compilations, and iterations of one line that runs what was compiled."""

import random

import pytest

from gpuviz.advice.findings import findings
from tests.unit.recording.from_activities import Timeline

MS = 1_000_000
RUNS, KERNELS = 12, ("fusion", "gemm", "reduce")


def jax(*, with_ranges=True, shapes=1):
    """Return the recording of a program whose line runs a function that XLA compiled."""
    timeline = Timeline()
    correlation, now = 0, MS
    for run in range(RUNS):
        if run < shapes:
            if with_ranges:
                add_range(timeline, "XlaCompile:#module=jit_update#", now, now + 100 * MS)
                # XLA's thread pool works on it.
                name = "XlaCompileBackend:#module=jit_update,program_id=1#"
                add_range(timeline, name, now + 1, now + 90 * MS, thread=9)
            now += 100 * MS
        if with_ranges:
            name = "XlaModule:#hlo_module=jit_update,program_id=1#"
            add_range(timeline, name, now, now + 3 * MS)
        for kernel in KERNELS:
            correlation += 1
            timeline.call(now, now + 10_000, line=7, correlation=correlation)
            timeline.kernel(now + 20_000, now + MS, kernel, correlation=correlation)
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
    ("shapes", "title", "change"),
    [
        (1, "XLA compiled 1 function: 100 ms", "jax_compilation_cache_dir"),
        (10, "`jit_update` was compiled 10 times: 1.00 s", "Pass arrays of one shape"),
    ],
)
def test_what_is_compiled_once_is_kept_and_what_is_compiled_for_each_shape_is_padded(
    shapes, title, change
):
    (finding,) = [each for each in findings(jax(shapes=shapes), small=True) if each.rule == "R47"]

    assert finding.title.startswith(title)
    assert change in finding.change
