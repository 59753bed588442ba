"""What findings about time save after those before them."""

import pytest

from gpuviz.advice.findings import findings
from gpuviz.conclusions.wording import saving
from gpuviz.present.text import conclusions_text
from tests.unit.advice.timed_programs import saved_ns, timed
from tests.unit.simulated_programs import pageable_pipeline

STEPS = 20


def steps(gpu, *, kernel, grid, reads):
    x = gpu.empty(8)
    for _ in range(STEPS):
        gpu.launch("step", duration=kernel, writes=[x], grid=(grid,))
        if reads:
            gpu.copy_to_host(x)
        gpu.work_on_host(400e-6)


def narrow_and_waiting(gpu):
    steps(gpu, kernel=2e-3, grid=1, reads=True)


def wide_and_waiting(gpu):
    steps(gpu, kernel=2e-3 / 132, grid=132, reads=True)


def wide(gpu):
    steps(gpu, kernel=2e-3 / 132, grid=132, reads=False)


def by_rule(program):
    return {each.rule: each for each in findings(timed(program))}


def test_the_first_finding_saves_the_same_alone_and_the_next_what_is_left():
    found = by_rule(narrow_and_waiting)
    kernel, wait = found["R42"], found["R18"]

    assert kernel.further_ns == kernel.saved_ns
    assert kernel.saved_ns == pytest.approx(saved_ns(narrow_and_waiting, wide_and_waiting), rel=0.2)
    assert wait.further_ns == pytest.approx(saved_ns(wide_and_waiting, wide), rel=0.2)
    assert wait.further_ns < 0.1 * wait.saved_ns


def test_the_text_gives_both_savings():
    wait = by_rule(narrow_and_waiting)["R18"]

    assert saving(wait) == "about 7.70 ms, 16 % of the time (after those that save more: 364 µs)"


def test_streams_that_never_overlap_are_shown_after_what_causes_it():
    shown = findings(timed(pageable_pipeline))
    streams = shown[-1]

    assert [each.rule for each in shown] == ["R17", "R44"]
    assert (streams.saved_ns > 0, streams.further_ns) == (True, 0)
    assert "(after the others: nothing)" in conclusions_text(
        timed(pageable_pipeline), [streams], None
    )


def narrow_streams_with_a_tick(gpu):
    """Fill half of the GPU with eight streams, but for work on the default stream between them."""
    arrays = [gpu.empty(8 << 20) for _ in range(8)]
    streams = [gpu.Stream() for _ in arrays]
    counter = gpu.empty(8)
    for _ in range(STEPS):
        for stream, array in zip(streams, arrays, strict=True):
            with stream:
                gpu.launch("work", writes=[array], duration=4e-4, share=0.12, grid=(8,))
            gpu.launch("tick", writes=[counter], duration=3e-6, grid=(1,))


def test_of_two_that_save_about_the_same_the_one_that_is_easier_to_follow_comes_first():
    orders, kernel = findings(timed(narrow_streams_with_a_tick))

    assert (orders.rule, kernel.rule) == ("R23", "R42")
    assert orders.saved_ns < kernel.saved_ns < 1.1 * orders.saved_ns
    assert orders.further_ns == orders.saved_ns
    assert kernel.further_ns < 0.5 * kernel.saved_ns
