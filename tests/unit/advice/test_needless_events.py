"""R24: events that order streams which share no memory."""

import pytest

from tests.unit.advice.ordered_streams import (
    KERNEL_S,
    STEPS,
    copies_beside_kernels,
    copies_on_the_default_stream,
    two,
)
from tests.unit.advice.timed_programs import found, saved_ns, small


def fills_before_it_synchronizes(gpu):
    computing, _, x, y = two(gpu, non_blocking=False)
    gpu.fill(x)
    gpu.fill(y)
    gpu.synchronize()
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
        gpu.copy_to_host(y, pinned=True)


def waits_for_events(gpu):
    computing, copying, x, y = two(gpu, non_blocking=True)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
        copying.wait_event(computing.record())
        with copying:
            gpu.copy_to_host(y, pinned=True)
        computing.wait_event(copying.record())


def waits_for_events_of_one(gpu):
    computing, copying, x, y = two(gpu, non_blocking=True)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
        copying.wait_event(computing.record())
    with copying:
        for _ in range(STEPS):
            gpu.copy_to_host(y, pinned=True)


def copies_at_once(gpu):
    computing, copying, x, y = two(gpu, non_blocking=True)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
    with copying:
        for _ in range(STEPS):
            gpu.copy_to_host(y, pinned=True)


def waits_for_results(gpu):
    computing, copying, x, _ = two(gpu, non_blocking=True)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
        copying.wait_event(computing.record())
        with copying:
            gpu.copy_to_host(x, pinned=True)
        computing.wait_event(copying.record())


def hands_on_by_a_third_stream(gpu):
    computing, copying, x, y = two(gpu, non_blocking=True)
    third = gpu.Stream(non_blocking=True)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
        copying.wait_event(computing.record())
        with copying:
            gpu.copy_to_host(y, pinned=True)
        third.wait_event(copying.record())
        with third:
            gpu.launch("use", duration=KERNEL_S, reads=[x])


def branches(gpu, *, chained, joined=False):
    """Run a narrow kernel on each of three streams, which wait for each other if chained.

    If joined, another kernel needs all results in each step.
    """
    streams = [gpu.Stream(non_blocking=True) for _ in range(3)]
    arrays, last = [gpu.empty(8) for _ in streams], None
    for _ in range(STEPS):
        for stream, array in zip(streams, arrays, strict=True):
            with stream:
                if chained and last is not None:
                    stream.wait_event(last)
                gpu.launch("branch", duration=KERNEL_S, writes=[array], share=0.3, grid=(40,))
                last = stream.record()
        if joined:
            with stream:
                gpu.launch("join", duration=1e-5, reads=arrays, writes=arrays)
                last = stream.record()


def test_kernels_that_needless_events_keep_apart_are_not_called_narrow():
    def chained(gpu):
        branches(gpu, chained=True)

    def separate(gpu):
        branches(gpu, chained=False)

    (finding,) = small(chained, "R24")

    assert finding.saved_ns == pytest.approx(saved_ns(chained, separate), rel=0.05)
    assert small(chained, "R42") == small(separate, "R42") == []
    assert len(small(lambda gpu: branches(gpu, chained=True, joined=True), "R42")) == 1


def test_what_was_shared_before_a_synchronization_of_the_device_does_not_count():
    (finding,) = found(fills_before_it_synchronizes, "R23")

    (alone,) = found(copies_on_the_default_stream, "R23")
    assert finding.saved_ns == pytest.approx(alone.saved_ns, rel=0.02)
    assert finding.title.startswith("The default stream and other streams wait for each other")


@pytest.mark.parametrize(
    ("program", "after", "title"),
    [
        (
            waits_for_events,
            copies_beside_kernels,
            "`copying.wait_event(computing.record())` and other lines order",
        ),
        (
            waits_for_events_of_one,
            copies_at_once,
            "`copying.wait_event(computing.record())` orders",
        ),
    ],
)
def test_needless_events_are_found_and_save_what_was_predicted(program, after, title):
    (finding,) = found(program, "R24")

    assert finding.saved_ns == pytest.approx(saved_ns(program, after), rel=0.2)
    assert finding.title == f"{title} streams that use different arrays."
    assert finding.change == (
        "Wait only for events of work whose results the stream uses, or whose arrays it overwrites."
    )
    assert finding.certainty == "likely"
    assert finding.lines[0].amount == "10 waits"


def test_the_reason_counts_the_needless_waits():
    (finding,) = found(waits_for_events, "R24")

    assert finding.reason == (
        "19 times a stream waits for an event of another one whose arrays neither it nor any "
        "stream that waits for it uses. Without these waits the work would end 6.00 ms earlier."
    )


@pytest.mark.parametrize(
    "program", [copies_beside_kernels, waits_for_results, hands_on_by_a_third_stream]
)
def test_events_that_are_needed_are_no_finding(program):
    assert small(program, "R24") == []
