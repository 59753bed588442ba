"""R41: operations that wait for the size of their result."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import without_frames
from tests.unit.advice.timed_programs import (
    found,
    saved_ns,
    small,
    timed,
)
from tests.unit.advice.waiting_programs import STEPS

SCAN = "void cub::detail::scan::DeviceScanKernel"


def selects(gpu, *, fetches=True, kernel="cupy_nonzero_kernel"):
    x, n = gpu.empty(1 << 20), gpu.empty(8)
    count, read = gpu.launch, gpu.copy_to_host
    for _ in range(STEPS):
        gpu.launch("step", duration=1e-3, writes=[x])
        _ = count(kernel, duration=1e-6, reads=[x], writes=[n]), fetches and read(n)
        gpu.work_on_host(400e-6)


def masked(gpu, *, counts=True):
    """Sum what a mask selects, by moving it to an array of its own or with zeros elsewhere."""
    x, mask, places, y = (gpu.empty(64 << 20) for _ in range(4))
    n = gpu.empty(8)

    def move():
        gpu.launch("cupy_copy__bool_int32", duration=40e-6, reads=[mask], writes=[places])
        gpu.launch(f"{SCAN}<int>(int)", duration=100e-6, reads=[places], writes=[places])
        gpu.work_on_host(10e-6)
        gpu.copy_to_host(n)
        gpu.launch("cupy_getitem_mask", duration=60e-6, reads=[x, mask, places], writes=[y])

    def keep():
        gpu.launch("cupy_where", duration=60e-6, reads=[x, mask], writes=[y])

    select = move if counts else keep
    for _ in range(STEPS):
        gpu.work_on_host(30e-6)
        gpu.launch("cupy_greater", duration=30e-6, reads=[x], writes=[mask])
        select()
        gpu.launch("cupy_sum", duration=30e-6, reads=[y], writes=[n])


def test_a_mask_needs_neither_its_count_nor_its_places_if_the_result_keeps_its_size():
    recording = without_frames(timed(masked), "masked.<locals>.move")
    finding = findings(recording)[0]
    kept = timed(lambda gpu: masked(gpu, counts=False))

    assert finding.rule == "R54"
    assert finding.saved_ns == pytest.approx(recording.duration_ns - kept.duration_ns, rel=0.1)
    assert [each for each in findings(kept, small=True) if each.rule == "R54"] == []


def test_an_operation_that_fetches_the_size_of_its_result_is_found():
    (finding,) = found(selects, "R54")

    measured = saved_ns(selects, lambda gpu: selects(gpu, fetches=False))
    assert finding.saved_ns == pytest.approx(measured, rel=0.2)
    assert "for the size of its result, in 19 calls." in finding.title
    assert [each for rule in ("R18", "R41") for each in small(selects, rule)] == []


def test_a_size_that_is_not_fetched_and_other_kernels_are_no_hidden_synchronization():
    assert small(lambda gpu: selects(gpu, fetches=False), "R54") == []
    for kernel in ("cupy_sum", "cupy_count_nonzero"):
        assert small(lambda gpu, kernel=kernel: selects(gpu, kernel=kernel), "R54") == []


@pytest.mark.parametrize("kernel", ["cupy_inclusive_scan_kernel", f"{SCAN}<float>(float)"])
def test_a_value_of_a_cumulative_sum_is_no_size(kernel):
    assert small(lambda gpu: selects(gpu, kernel=kernel), "R54") == []
    assert len(small(lambda gpu: selects(gpu, kernel=kernel), "R18")) == 1
