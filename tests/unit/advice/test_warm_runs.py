"""Savings of a warm run, in which the host compiles and loads nothing."""

import pytest

from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from tests.unit.advice.timed_programs import found, small, timed


def reports_at_last(gpu, *, compiles=True, waits=True):
    """Wait for the steps, and compile a kernel for the report, or read a file for it."""
    for _ in range(20):
        gpu.launch("step", duration=2e-3)
    if waits:
        gpu.synchronize()
    if compiles:
        gpu.compile("report", duration=15e-3)
    else:
        gpu.work_on_host(15e-3)
    gpu.launch("report", duration=1e-3)


def reads_a_file(gpu):
    reports_at_last(gpu, compiles=False)


def hides_behind_a_compilation(gpu, *, compiles=True, duration=1e-3):
    """Compile a kernel while the steps run, for about as long."""
    for _ in range(20):
        gpu.launch("step", duration=duration)
    if compiles:
        gpu.compile("report", duration=20e-3)
    gpu.launch("report", duration=1e-3)


def test_a_wait_before_a_compilation_saves_nothing_but_one_before_other_work_does():
    assert found(reports_at_last, "R41") == []
    (finding,) = found(reads_a_file, "R41")

    saved = timed(reads_a_file).duration_ns
    saved -= timed(lambda gpu: reports_at_last(gpu, compiles=False, waits=False)).duration_ns
    assert finding.saved_ns == pytest.approx(saved, rel=0.01)


def test_shorter_work_saves_what_it_does_when_nothing_is_compiled():
    schedule = Schedule(timed(hides_behind_a_compilation))
    shorter = ScheduleChange(duration=schedule.duration // 2)
    warm, faster = (
        timed(lambda gpu, each=each: hides_behind_a_compilation(gpu, compiles=False, duration=each))
        for each in (1e-3, 0.5e-3)
    )

    assert schedule.saved_ns(shorter) == pytest.approx(
        warm.duration_ns - faster.duration_ns, rel=0.06
    )
    assert schedule.saved_ns(shorter, cold=True) < 2e6


def test_after_other_savings_a_compilation_saves_what_is_left_of_it():
    schedule = Schedule(timed(hides_behind_a_compilation))
    (finding,) = small(hides_behind_a_compilation, "R47")
    shorter = ScheduleChange(duration=schedule.duration // 10)

    alone, (before, after) = (
        schedule.saved_alone(finding.schedule or ScheduleChange(is_of_preparation=True)),
        schedule.saved_in_sequence([shorter, ScheduleChange(is_of_preparation=True)]),
    )

    assert alone == after == 0
    assert before == pytest.approx(0.9 * 21e6, rel=0.01)


def test_what_is_compiled_again_and_again_is_no_preparation():
    def program(gpu):
        for _ in range(20):
            gpu.compile("filter", duration=5e-3)
            gpu.launch("filter", duration=1e-3)

    schedule = Schedule(timed(program))
    shorter = ScheduleChange(duration=schedule.duration // 2)

    assert schedule.saved_ns(shorter) < 1e6
