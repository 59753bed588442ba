"""R41: synchronizations, instead of copies, that wait for earlier work."""

import functools

import pytest

import gpuviz
from tests.unit.advice.timed_programs import (
    found,
    saved_ns,
    small,
)
from tests.unit.advice.waiting_programs import (
    STEPS,
    never_waits,
    reads_pinned_memory_each_step,
    steps,
)


def reads_one_step_later(gpu):
    steps(gpu, read=gpu.copy_to_host, ahead=1, host=1e-6)


def test_a_synchronization_is_found_and_removing_it_saves_what_was_predicted():
    (finding,) = found(reads_pinned_memory_each_step, "R41")

    measured = saved_ns(reads_pinned_memory_each_step, never_waits)
    assert finding.saved_ns == pytest.approx(measured, rel=0.2)
    assert "The copies" not in finding.reason
    assert finding.change == (
        "The host waits there for a copy from the GPU. Launch the next work before the wait, so "
        "that the GPU works while the host reads the result. The next copy then needs another "
        "buffer."
    )


def test_another_stream_is_told_to_wait_for_an_event():
    def hands_over(gpu):
        one, other = (gpu.Stream(non_blocking=True) for _ in range(2))
        x = gpu.empty(1 << 20)
        for _ in range(STEPS):
            with one:
                gpu.launch("make", duration=1e-3, writes=[x])
            one.synchronize()
            with other:
                gpu.launch("use", duration=1e-3, reads=[x])
            other.synchronize()
            gpu.work_on_host(400e-6)

    (first, *_) = found(hands_over, "R41")

    assert first.change.startswith("Wait only where the host needs the result")
    assert first.change.endswith("`other.wait_event(stream.record())`.")


def test_work_that_overlaps_takes_longer_than_the_wait_for_it():
    def waits_for_both(gpu):
        streams = [gpu.Stream(non_blocking=True) for _ in range(2)]
        x = [gpu.empty(1 << 20) for _ in streams]
        for _ in range(STEPS):
            for stream, array in zip(streams, x, strict=True):
                with stream:
                    gpu.launch("make", duration=1e-3, writes=[array], share=0.4, grid=(52,))
            gpu.synchronize()
            gpu.work_on_host(400e-6)
            gpu.launch("use", duration=1e-5, reads=x)

    (finding, *_) = small(waits_for_both, "R41")

    assert "that was launched before, mostly for `gpu.launch(" in finding.reason


def reports(gpu, *, every=1):
    """Train, and read a result to report the progress."""
    x = gpu.empty(64)
    for step in range(60):
        with gpuviz.range("step"):
            for name in ("forward", "backward", "update"):
                gpu.launch(name, duration=0.3e-3, writes=[x])
        if step % every == 0:
            gpu.copy_to_host(x)
            gpu.work_on_host(2e-3)


def tries_kernels_first(gpu, *, steps=60):
    """The first step, in which a library tries its kernels, waits for many."""
    x = gpu.empty(64)
    for step in range(steps):
        with gpuviz.range("step"):
            for _ in range(1 if step else 20):
                gpu.launch("forward", duration=0.3e-3, writes=[x])
                if step == 0:
                    gpu.copy_to_host(x)
                gpu.work_on_host(1e-3)


def test_waits_to_report_progress_and_of_warm_up_are_no_finding():
    assert len(small(reports, "R41")) == 1
    assert small(functools.partial(reports, every=12), "R41") == []
    assert len(small(functools.partial(tries_kernels_first, steps=1), "R41")) == 1
    assert small(tries_kernels_first, "R41") == []


def test_a_wait_during_which_the_gpu_stays_busy_saves_nothing():
    assert found(reads_one_step_later, "R41") == []
    (finding,) = small(reads_one_step_later, "R41")
    assert finding.reason.endswith(
        "The GPU is busy during the waits and hardly idle after them, so that removing them saves "
        "almost nothing."
    )
