"""R44: streams that never work at the same time."""

import pytest

from tests.unit.advice.timed_programs import found, saved_ns, small
from tests.unit.simulated_programs import pageable_pipeline, pinned_pipeline

STEPS = 10
COPIED = 32 << 20


def lanes(gpu, *, non_blocking=True, streams=2):
    return [(gpu.Stream(non_blocking=non_blocking), gpu.empty(COPIED)) for _ in range(streams)]


def alternate(gpu, *, non_blocking, default):
    """Run kernels on a stream, and copies on the default stream or another one."""
    (computing, x), (copying, y) = lanes(gpu, non_blocking=non_blocking)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=600e-6, writes=[x])
        with gpu.null_stream if default else copying:
            gpu.copy_to_host(y, pinned=True)


def beside_the_default_stream(gpu):
    alternate(gpu, non_blocking=False, default=True)


def on_non_blocking_streams(gpu):
    alternate(gpu, non_blocking=True, default=False)


def synchronizing(gpu, *, each=True, event=False):
    (computing, x), (copying, y) = lanes(gpu)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=600e-6, writes=[x])
        if each:
            computing.synchronize()
        if event:
            copying.wait_event(computing.record())
        with copying:
            gpu.copy_to_host(y, pinned=True)
        if each:
            copying.synchronize()
        if event:
            computing.wait_event(copying.record())


def synchronizing_each(gpu):
    synchronizing(gpu)


def waiting_for_events(gpu):
    synchronizing(gpu, each=False, event=True)


def waiting_for_nothing(gpu):
    synchronizing(gpu, each=False)


def launching_late(gpu):
    (computing, x), (copying, y) = lanes(gpu)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=600e-6, writes=[x])
        gpu.work_on_host(1e-3)
        with copying:
            gpu.copy_to_host(y, pinned=True)
        gpu.work_on_host(1e-3)


def full_kernels(gpu):
    for _ in range(STEPS):
        for stream, x in lanes(gpu):
            with stream:
                gpu.launch("full", duration=600e-6, writes=[x], grid=(10_000,))


def one_after_the_other(gpu):
    for stream, x in lanes(gpu):
        with stream:
            for _ in range(STEPS):
                gpu.launch("compute", duration=600e-6, writes=[x])
        stream.synchronize()


@pytest.mark.parametrize(
    ("program", "after", "why", "change"),
    [
        (
            beside_the_default_stream,
            on_non_blocking_streams,
            "the default stream and blocking streams wait for each other",
            (
                "Create the streams with non_blocking=True and use no default stream beside them, "
                "or order what belongs together by events."
            ),
        ),
        (
            synchronizing_each,
            waiting_for_nothing,
            "the host synchronizes before it launches the next work",
            "Launch the work of all streams before you wait for any.",
        ),
        (
            waiting_for_events,
            waiting_for_nothing,
            "one waits for an event of the other",
            "Wait only for events of work whose results the stream uses.",
        ),
    ],
)
def test_streams_in_turn_are_found_and_overlap_saves_what_was_predicted(
    program, after, why, change
):
    (finding,) = found(program, "R44")

    assert finding.saved_ns == pytest.approx(saved_ns(program, after), rel=0.2)
    assert finding.title.startswith("The streams `")
    assert finding.title.endswith(f"never work at the same time: {why}.")
    assert "although both activities would fit on the GPU" in finding.reason
    assert (finding.change, finding.certainty) == (change, "possible")


def test_pageable_copies_that_keep_streams_from_overlapping_are_found():
    (finding,) = small(pageable_pipeline, "R44")

    assert 0 < finding.saved_ns < saved_ns(pageable_pipeline, pinned_pipeline)
    assert finding.title.endswith(
        "the host waits in copies of pageable memory before it launches the next work."
    )


def test_of_streams_that_the_host_serves_late_no_saving_is_predicted():
    (finding,) = small(launching_late, "R44")

    assert finding.saved_ns == 0
    assert finding.title.endswith(
        "the host launches the work of one stream after that of the other has ended."
    )


@pytest.mark.parametrize(
    "program", [pinned_pipeline, on_non_blocking_streams, full_kernels, one_after_the_other]
)
def test_overlapping_full_and_successive_streams_are_no_finding(program):
    assert small(program, "R44") == []
