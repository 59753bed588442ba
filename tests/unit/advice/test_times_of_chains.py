"""R08: the time that one kernel takes, on the GPU and on the host."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.elementwise import SIZE, apply, chains, computes
from tests.unit.advice.programs import (
    MIB,
    threads,
    without_frames,
)
from tests.unit.advice.timed_programs import saved_ns, timed

FLOATS = SIZE // 4


def short(gpu, *_):
    small = apply(gpu, "", size=512)
    return apply(gpu, "sqrt", apply(gpu, "square", small, size=512), size=512)


def slowly(gpu, function, *reads):
    gpu.work_on_host(20e-6)
    return apply(gpu, function, *reads, size=MIB)


def test_launches_that_vanish_with_their_kernels_save_their_time_on_the_host():
    def one_by_one(gpu):
        x = gpu.empty(MIB)
        for _ in range(50):
            result = slowly(gpu, "exp", slowly(gpu, "sqrt", slowly(gpu, "square", x)))
            gpu.launch("stir", duration=2e-6, reads=[result], writes=[x])

    def at_once(gpu):
        x = gpu.empty(MIB)
        for _ in range(50):
            result = slowly(gpu, "", x)
            gpu.launch("stir", duration=2e-6, reads=[result], writes=[x])

    whole = without_frames(without_frames(timed(one_by_one), "apply"), "slowly")
    (finding,) = (each for each in findings(whole) if each.rule == "R08")

    assert finding.saved_ns == pytest.approx(saved_ns(one_by_one, at_once), rel=0.1)


def test_short_kernels_do_not_wait_for_memory():
    (finding,) = chains(timed(computes(short, rounds=1)))

    assert (finding.saved_bytes, finding.saved_ns) == (512, 0)
    assert finding.reason == (
        "`square`, `sqrt` take 1.40 µs in 2 launches. 1 array of them is only read by the next "
        "ones; 1 launch of one kernel would keep the elements in registers."
    )


def limited(gpu, function, *reads):
    """Return the result of a kernel that takes as long for two arrays as for three."""
    target = gpu.empty(SIZE)
    kinds = "_".join(["float32"] * (1 + len(reads)))
    gpu.launch(
        f"cupy_{function}__{kinds}" if function else "expression",
        duration=max(4.8e-12 * FLOATS, (1 + len(reads)) * SIZE / 3e12),
        reads=reads,
        writes=[target],
        **threads(FLOATS),
    )
    return target


def limited_one_by_one(gpu, a, b, _):
    return limited(gpu, "sqrt", limited(gpu, "add", limited(gpu, "square", a), b))


def limited_at_once(gpu, a, b, _):
    return limited(gpu, "", a, b)


def test_one_kernel_takes_the_time_of_its_threads_once():
    programs = computes(limited_one_by_one), computes(limited_at_once)
    (finding,) = chains(without_frames(timed(programs[0]), "limited"))

    assert finding.saved_ns == pytest.approx(saved_ns(*programs), rel=0.05)
