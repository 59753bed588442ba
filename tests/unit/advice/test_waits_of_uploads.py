"""R41: uploads that wait for earlier work, and what is computed from values that were read."""

import pytest

from tests.unit.advice.timed_programs import (
    found,
    small,
)
from tests.unit.advice.waiting_programs import steps


def uploads_a_table(gpu):
    table = gpu.empty(1 << 17)
    steps(gpu, read=lambda _: gpu.copy_to_device(table, blocking=True))


def uploads_a_table_beside_copies_within_the_gpu(gpu):
    table, x = gpu.empty(1 << 17), gpu.empty(1 << 17)
    steps(gpu, read=lambda _: (gpu.copy(x, table), gpu.copy_to_device(table, blocking=True)))


def uploads_a_table_and_reads_results(gpu):
    table = gpu.empty(1 << 17)
    steps(gpu, read=lambda x: (gpu.copy_to_device(table), gpu.copy_to_host(x)), array=4096)


@pytest.mark.parametrize("program", [uploads_a_table, uploads_a_table_beside_copies_within_the_gpu])
def test_uploads_that_wait_are_advised_to_copy_without_waiting(program):
    (finding,) = found(program, "R41")

    assert finding.change == (
        "Copy what never changes once, before the loop, and the rest without waiting: from pinned "
        "memory, asynchronously. Pass a number to the operation itself instead of an array of one "
        "element, or make the array on the GPU."
    )


def test_a_line_that_reads_as_well_is_advised_to_read_later():
    (finding,) = small(uploads_a_table_and_reads_results, "R41")

    assert finding.change.startswith("Keep the value on the GPU and read it")


def evolves(gpu, *, uploads=True):
    """Select parents by the scores of a population, on the host, and copy the choice back."""
    population, scores, chosen = (gpu.empty(4096) for _ in range(3))
    log = []
    for _ in range(20):
        gpu.launch("score", duration=1e-3, reads=[population], writes=[scores])
        values = gpu.copy_to_host(scores)
        parents = (values, gpu)
        if uploads:
            send(gpu, chosen, parents)
        else:
            log.append(parents)
        gpu.launch("cross", duration=1e-4, reads=[population, chosen], writes=[population])
        gpu.work_on_host(3e-4)


def send(gpu, array, _values):
    gpu.copy_to_device(array)


def test_what_is_computed_from_a_value_and_copied_to_the_gpu_is_needed_at_once():
    assert small(evolves, "R41") == []
    assert len(small(lambda gpu: evolves(gpu, uploads=False), "R41")) == 1
