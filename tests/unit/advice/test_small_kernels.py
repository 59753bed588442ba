"""R29: small kernels in a row that one kernel could replace."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import within
from tests.unit.advice.timed_programs import found, saved_ns, small, timed

PARTS = 400
KERNEL_S = 3e-6


def long_work(gpu):
    x = gpu.empty(1 << 20)
    for _ in range(5):
        gpu.launch("long", duration=4e-3, writes=[x])
        gpu.copy_to_host(x)


def scales_parts(gpu):
    long_work(gpu)
    parts = [(gpu.empty(4096), gpu.empty(4096)) for _ in range(PARTS)]
    for x, y in parts:
        gpu.launch("scale", duration=KERNEL_S, reads=[x], writes=[y])


def scales_all(gpu):
    long_work(gpu)
    _ = [(gpu.empty(4096), gpu.empty(4096)) for _ in range(PARTS)]
    gpu.launch("scale", duration=KERNEL_S + (PARTS - 1) * (KERNEL_S - 2e-6), grid=(PARTS,))


def steps_in_time(gpu):
    long_work(gpu)
    x, y = gpu.empty(4096), gpu.empty(4096)
    for _ in range(PARTS):
        gpu.launch("step", duration=KERNEL_S, reads=[x], writes=[y])
        x, y = y, x


def accumulates(gpu):
    long_work(gpu)
    parts = [gpu.empty(4096) for _ in range(PARTS)]
    total = gpu.empty(4096)
    for x in parts:
        gpu.launch("add", duration=KERNEL_S, reads=[x, total], writes=[total])


def two_kernels_in_turn(gpu):
    long_work(gpu)
    parts = [(gpu.empty(4096), gpu.empty(4096)) for _ in range(PARTS)]
    for x, y in parts:
        gpu.launch("scale", duration=KERNEL_S, reads=[x], writes=[y])
        gpu.launch("shift", duration=KERNEL_S, reads=[y], writes=[x])


def by_pointers(gpu):
    long_work(gpu)
    for _ in range(PARTS):
        gpu.launch("by_pointers", duration=KERNEL_S)


def a_few(gpu):
    long_work(gpu)
    for _ in range(7):
        gpu.launch("scale", duration=KERNEL_S, reads=[gpu.empty(4096)], writes=[gpu.empty(4096)])


def long_kernels(gpu):
    for x in [gpu.empty(4096) for _ in range(PARTS)]:
        gpu.launch("scale", duration=20e-6, writes=[x])


def test_small_kernels_in_a_row_are_found_and_one_saves_what_was_predicted():
    (finding,) = found(scales_parts, "R29")

    assert finding.saved_ns == pytest.approx(saved_ns(scales_parts, scales_all), rel=0.2)
    assert finding.title == (
        '`gpu.launch("scale", duration=KERNEL_S, reads=[x], writes=[y])` launches scale 400 times '
        "in a row."
    )
    assert finding.reason == (
        "Each takes 3.00 µs (median) on the GPU, and none uses what another one writes. The "
        "launches take 399 µs of the host."
    )
    assert finding.change == (
        "Do it in one operation: keep the parts in one array with another axis, and apply the "
        "function to all of it."
    )
    assert finding.certainty == "possible"


@pytest.mark.parametrize(
    "program",
    [
        scales_all,
        steps_in_time,
        accumulates,
        two_kernels_in_turn,
        by_pointers,
        a_few,
        long_kernels,
    ],
)
def test_kernels_that_depend_on_each_other_or_are_long_are_no_finding(program):
    assert small(program, "R29") == []


def test_a_function_of_a_library_may_launch_many_kernels_in_one_call():
    recording = within(timed(scales_parts), "/x/site-packages/library.py")

    assert [each for each in findings(recording, small=True) if each.rule == "R29"] == []
