"""R43: the GPU is idle while the host computes."""

import re

import pytest

from gpuviz.advice.findings import findings
from gpuviz.conclusions.wording import saving
from tests.unit.advice.host_work import (
    STEPS,
    chunks,
    computes_between_chunks,
    computes_nothing,
)
from tests.unit.advice.timed_programs import found, saved_ns, small, timed, with_cells


def computes_meanwhile(gpu):
    chunks(gpu, host=150e-6, after_launch=True)


def launches_slowly(gpu):
    chunks(gpu, host=30e-6, kernel=10e-6)


def loads_once(gpu):
    chunks(gpu, host=1e-9)
    gpu.work_on_host(1.0)
    chunks(gpu, host=1e-9)


def compiles_each_kernel(gpu):
    for number in range(STEPS):
        gpu.work_on_host(1e-3)
        gpu.launch(f"kernel {number}", duration=1e-3)
        gpu.synchronize()


def starts_slowly(gpu):
    for step in range(STEPS):
        gpu.launch("step", duration=200e-6)
        gpu.synchronize()
        gpu.work_on_host(5e-3 if step else 1.0)


def test_work_between_chunks_is_found_and_without_it_the_program_is_as_much_faster_as_predicted():
    (finding,) = found(computes_between_chunks, "R43")

    assert finding.saved_ns == pytest.approx(
        saved_ns(computes_between_chunks, computes_nothing), rel=0.2
    )
    assert finding.title == (
        "The GPU is idle for 19.0 ms, 79 % of the time, while the host works between "
        '`gpu.synchronize()` and the next `gpu.launch("filter", duration=kernel, writes=[x])`.'
    )
    assert finding.reason == (
        "19 times the host spends 1.00 ms on average between two CUDA calls there, 19.0 ms in "
        "total, and has launched nothing that the GPU could do meanwhile."
    )
    assert finding.change == (
        "Do this work on the GPU, or while the GPU works: launch the next work before it, or do it "
        "in another thread. The saving is that of work that takes no time."
    )
    assert [line.source for line in finding.lines] == [
        "gpu.synchronize()",
        'gpu.launch("filter", duration=kernel, writes=[x])',
    ]
    assert finding.evidence.table == "idle_gaps"
    assert len(finding.evidence.rows) == STEPS - 1


def starts_a_library(gpu):
    """Prepare each kernel in steps, as cuBLAS and cuDNN do before its first launch."""
    for number in range(5):
        for _ in range(STEPS):
            workspace = gpu.empty(1 << 20)
            gpu.work_on_host(1e-3)
            gpu.synchronize()
        gpu.launch(f"gemm {number}", duration=1e-3, writes=[workspace])
        gpu.synchronize()


def prepares_and_steps(gpu):
    x = gpu.empty(1 << 20)
    for _ in range(STEPS):
        gpu.work_on_host(10e-3)
        gpu.launch("prepare", duration=200e-6, writes=[x])
        gpu.synchronize()
    for _ in range(5 * STEPS):
        gpu.launch("forward", duration=2e-3, reads=[x], writes=[x])
        gpu.launch("step", duration=1e-3, reads=[x], writes=[x])


@pytest.mark.parametrize("program", [computes_between_chunks, prepares_and_steps])
def test_the_idle_time_and_the_saving_are_shares_of_the_same_time(program):
    (finding,) = found(program, "R43")
    idle = re.search(r"is idle for (\S+ \S+), (\S+ %) of the time", finding.title)

    assert finding.is_of_warm_up == (program is prepares_and_steps)
    assert saving(finding).startswith(f"about {idle[1]}, {idle[2]} of the time")


@pytest.mark.parametrize(
    "program",
    [computes_meanwhile, launches_slowly, loads_once, compiles_each_kernel, starts_a_library],
)
def test_work_beside_the_gpu_launches_and_preparation_are_no_finding(program):
    assert small(program, "R43") == []


def test_time_between_notebook_cells_is_no_finding():
    recording = timed(computes_between_chunks)
    calls = recording.tables["api_calls"].to_pylist()
    launching = recording.tables["activities"]["correlation"].to_pylist()
    launches = [call["time"] for call in calls if call["correlation"] in launching]
    waits = [call["end"] for call in calls if call["end"] - call["time"] > 150_000]
    cells = list(zip(launches, waits, strict=True))

    in_cells = with_cells(recording, cells)
    in_one = with_cells(recording, [(0, -1)])

    assert [each for each in findings(in_cells, small=True) if each.rule == "R43"] == []
    assert [each.rule for each in findings(in_one)] == [each.rule for each in findings(recording)]


def test_a_slow_first_iteration_does_not_count_as_work_of_each():
    (finding,) = found(starts_slowly, "R43")

    assert finding.saved_ns == pytest.approx((STEPS - 2) * 5e6, rel=0.02)


def test_work_is_between_the_lines_of_the_innermost_common_function():
    def program(gpu):
        def step():
            gpu.synchronize()
            gpu.work_on_host(1e-3)

        for _ in range(STEPS):
            gpu.launch("step", duration=200e-6)
            step()

    (finding,) = found(program, "R43")

    assert "between `step()` and the next `gpu.launch(" in finding.title


def test_work_around_a_line_that_repeats_names_that_line():
    def program(gpu):
        for _ in range(STEPS):
            _ = gpu.launch("step", duration=200e-6), gpu.work_on_host(1e-3)

    (finding,) = found(program, "R43")

    assert finding.title.endswith(
        "within or between the runs of "
        '`_ = gpu.launch("step", duration=200e-6), gpu.work_on_host(1e-3)`.'
    )
    assert len(finding.lines) == 1


def test_work_before_the_round_of_a_loop_is_not_its_first_line_s():
    def program(gpu):
        for _ in range(STEPS):
            x = gpu.empty(1 << 20)
            gpu.launch("step", duration=200e-6, writes=[x])
            gpu.synchronize()
            gpu.work_on_host(1e-3)

    (finding,) = found(program, "R43")

    assert finding.title.endswith(
        "between `gpu.synchronize()` and the next `x = gpu.empty(1 << 20)`."
    )


def test_work_after_a_function_has_returned_is_not_in_its_line():
    def step(gpu):
        x = gpu.empty(1 << 20)
        gpu.launch("step", duration=200e-6, writes=[x])
        gpu.synchronize()

    def program(gpu):
        for _ in range(STEPS):
            step(gpu)
            gpu.work_on_host(1e-3)

    (finding,) = found(program, "R43")

    assert finding.title.endswith(
        "between `gpu.synchronize()` and the next `x = gpu.empty(1 << 20)`."
    )


def test_an_allocation_before_the_work_tells_where_it_is():
    def program(gpu):
        for _ in range(STEPS):
            x = gpu.empty(1 << 20)
            gpu.work_on_host(1e-3)
            gpu.launch("step", duration=200e-6, writes=[x])
            gpu.synchronize()

    (finding,) = found(program, "R43")

    assert finding.title.endswith(
        'between `x = gpu.empty(1 << 20)` and `gpu.launch("step", duration=200e-6, writes=[x])`.'
    )


def test_work_after_the_allocator_has_called_the_driver_has_lines_on_both_sides():
    def uploads(gpu):
        kept = []
        for _ in range(20):
            kept.append(gpu.empty(32 << 20))
            gpu.work_on_host(3e-3)
            gpu.copy_to_device(kept[-1], pinned=True)

    (finding,) = found(uploads, "R43")

    assert finding.title.endswith(
        "between `kept.append(gpu.empty(32 << 20))` and `gpu.copy_to_device(kept[-1], "
        "pinned=True)`."
    )


@pytest.mark.parametrize(("every", "count"), [(10, 1), (50, 0)])
def test_pauses_in_few_rounds_of_a_step_are_not_the_programs_work(every, count):
    def program(gpu):
        x = gpu.empty(1 << 20)
        for step in range(200):
            gpu.work_on_host(2e-3 if step % every == every - 1 else 1e-5)
            gpu.launch("filter", duration=2e-5, writes=[x])

    assert len(found(program, "R43")) == count
