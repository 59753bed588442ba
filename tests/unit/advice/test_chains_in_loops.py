"""R08: rounds of a loop that one kernel could do."""

import pytest

from tests.unit.advice.elementwise import RATE, SIZE, apply, chains, computes, total, update
from tests.unit.advice.programs import (
    recorded,
)
from tests.unit.advice.timed_programs import saved_ns, timed


def test_a_line_that_updates_an_array_is_one_kernel_in_each_round():
    def averages(gpu):
        average = gpu.empty(SIZE)
        gpu.launch("make", duration=1e-4, writes=[average])
        for _ in range(10):
            new = gpu.empty(SIZE)
            gpu.launch("make", duration=1e-4, writes=[new])
            average = apply(gpu, "add", apply(gpu, "sqrt", average), apply(gpu, "square", new))

    (finding,) = chains(recorded(averages))

    assert "10 launches of one kernel would keep" in finding.reason


def test_the_rounds_of_a_loop_on_one_line_are_kernels_of_their_own():
    def iterates(gpu, a, b, _):
        for _ in range(20): a = apply(gpu, "sqrt", apply(gpu, "add", a, b))  # fmt: skip # noqa: E701
        return a

    def sums(gpu, a, b, _):
        for _ in range(20): total(gpu, apply(gpu, "sqrt", apply(gpu, "add", a, b)))  # fmt: skip # noqa: E701

    updated, summed = (chains(recorded(computes(each, rounds=1))) for each in (iterates, sums))

    assert "20 arrays of them are only read by the next ones; 20 launches of" in updated[0].reason
    assert "40 arrays of them are only read by the next ones; 20 launches of" in summed[0].reason


def test_the_last_round_of_a_loop_adds_no_line_to_the_others():
    def updates(gpu):
        speed, place = gpu.empty(SIZE), gpu.empty(SIZE)
        gpu.launch("make", duration=1e-4, writes=[speed, place])
        for _ in range(10):
            speed = apply(gpu, "sqrt", apply(gpu, "square", speed))
            place = apply(gpu, "add", place, apply(gpu, "negative", speed))

    found = chains(recorded(updates))

    assert [len(each.lines) for each in found] == [1, 1]
    assert all("20 launches" in each.reason for each in found)


def sums(gpu, a, b, c):
    for _ in range(8):
        update(gpu, c, apply(gpu, "multiply", a, b))


def sums_over_lines(gpu, a, b, c):
    for _ in range(8):
        product = apply(gpu, "multiply", a, b)
        update(gpu, c, product)
        del product


def sums_of_one_array(gpu, a, _, c):
    for _ in range(8):
        update(gpu, c, a)


def one_kernel_for_all_rounds(gpu, a, b, c):
    gpu.launch("sum", duration=4 * SIZE / RATE, reads=[c, a, b], writes=[c])


def one_kernel_for_an_array(gpu, a, _, c):
    gpu.launch("sum", duration=3 * SIZE / RATE, reads=[c, a], writes=[c])


def used_in_each_round(gpu, a, b, c):
    for _ in range(8):
        update(gpu, c, apply(gpu, "multiply", a, b))
        total(gpu, c)


def of_its_own_value(gpu, a, _, c):
    for _ in range(8):
        update(gpu, c, apply(gpu, "multiply", a, c))


def of_other_arrays(gpu, a, b, c):
    for each in (a, b, a, b, a, b):
        update(gpu, c, each)


def of_what_is_made_meanwhile(gpu, a, b, c):
    for _ in range(8):
        gpu.launch("smooth", duration=SIZE / RATE, reads=[b], writes=[a])
        update(gpu, c, a)


def read_by_the_host_in_each_round(gpu, a, b, c):
    for _ in range(8):
        gpu.copy_to_host(b)
        update(gpu, c, a)


@pytest.mark.parametrize(
    ("program", "fused"),
    [
        (sums, one_kernel_for_all_rounds),
        (sums_over_lines, one_kernel_for_all_rounds),
        (sums_of_one_array, one_kernel_for_an_array),
    ],
)
def test_one_kernel_does_all_rounds_that_update_an_array(program, fused):
    (finding,) = chains(timed(computes(program)))

    assert finding.title.endswith("the same array 8 times in a row.")
    assert finding.saved_ns == pytest.approx(saved_ns(computes(program), computes(fused)), rel=0.2)


@pytest.mark.parametrize(
    "program",
    [
        used_in_each_round,
        of_its_own_value,
        of_other_arrays,
        of_what_is_made_meanwhile,
        read_by_the_host_in_each_round,
    ],
)
def test_rounds_that_one_kernel_cannot_do_are_not_joined(program):
    found = chains(timed(computes(program)))

    assert [each for each in found if "in a row" in each.title] == []


def step(gpu, a, b):
    return apply(gpu, "add", apply(gpu, "sqrt", a), b)


def in_a_loop_over_a_function(gpu, a, b, _):
    for _ in range(6):
        a = step(gpu, a, b)
    return a


def test_the_rounds_of_a_loop_over_a_function_are_kernels_of_their_own():
    (finding,) = chains(recorded(computes(in_a_loop_over_a_function)))

    assert "60 launches of one kernel would keep" in finding.reason
    assert [each.source for each in finding.lines] == [
        'return apply(gpu, "add", apply(gpu, "sqrt", a), b)'
    ]
