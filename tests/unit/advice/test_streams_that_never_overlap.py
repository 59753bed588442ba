"""R44: streams that never work at the same time."""

import pytest

from tests.unit.advice.timed_programs import found, saved_ns, small
from tests.unit.simulated_programs import pageable_pipeline, pinned_pipeline

STEPS = 10
COPIED = 32 << 20


def lanes(gpu):
    return [(gpu.Stream(non_blocking=True), gpu.empty(COPIED)) for _ in range(2)]


def synchronizing(gpu, *, each):
    (computing, x), (copying, y) = lanes(gpu)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=600e-6, writes=[x])
        if each:
            computing.synchronize()
        with copying:
            gpu.copy_to_host(y, pinned=True)
        if each:
            copying.synchronize()


def synchronizing_each(gpu):
    synchronizing(gpu, each=True)


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


def test_streams_in_turn_are_found_and_overlap_saves_what_was_predicted():
    (finding,) = found(synchronizing_each, "R44")

    assert finding.saved_ns == pytest.approx(
        saved_ns(synchronizing_each, waiting_for_nothing), rel=0.2
    )
    assert finding.title.startswith("The streams `")
    assert finding.title.endswith(
        "never work at the same time: the host synchronizes before it launches the next work."
    )
    assert "although both activities would fit on the GPU" in finding.reason
    assert finding.change == "Launch the work of all streams before you wait for any."
    assert finding.certainty == "possible"


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
    "program", [pinned_pipeline, waiting_for_nothing, full_kernels, one_after_the_other]
)
def test_overlapping_full_and_successive_streams_are_no_finding(program):
    assert small(program, "R44") == []
