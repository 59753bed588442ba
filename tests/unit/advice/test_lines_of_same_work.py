"""R57: which line is named, and with which memory."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import of_arrays
from tests.unit.advice.programs import within
from tests.unit.advice.repeated_work import (
    ROUNDS,
    SIZE,
    again,
    by_a_function,
    in_each_round,
    once,
    over_lines,
)


def by_a_function_that_did_more_at_first(cp):
    """What is known of the first rounds is not enough to call their results the same."""
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(8 * ROUNDS):
        squares = cp.empty(SIZE)
        cp.kernel("cupy_square__float32_float32", [x], [squares], scalars=[min(step, 2)])
        state += squares


def scaled_in_place(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        weights = cp.elementwise("exp", x)
        weights *= 0.5
        state += weights


def two_lines(cp):
    x, state, other = cp.uploaded(SIZE), cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        weights = cp.elementwise("exp", x)
        state += weights
        roots = cp.elementwise("sqrt", x)
        other += roots


def test_a_line_is_named_with_the_memory_of_its_result():
    (finding,) = again(of_arrays(in_each_round))

    assert finding.title == (
        '`weights = cp.elementwise("exp", x * x)` computes the same values 20 times.'
    )
    assert finding.change == ("Compute this once, before the loop, and keep the result (64.0 MiB).")


def test_each_line_is_named_with_the_memory_of_its_own_result():
    found = again(of_arrays(two_lines))

    assert len(found) == 2
    assert all("keep the result (64.0 MiB)" in each.change for each in found)


def test_each_module_has_parameters_of_its_own_however_they_begin():
    packages = "/env/lib/python3.12/site-packages/torch/nn"

    assert again(within(of_arrays(by_a_function), f"{packages}/functional.py", "normalize"))
    assert again(within(of_arrays(by_a_function), f"{packages}/init.py", "ones_")) == []


def test_the_line_that_calls_a_function_is_named_if_it_does_nothing_else():
    (finding,) = again(of_arrays(by_a_function))

    assert finding.title == "`weights = weights_of(cp, x)` computes the same values 20 times."


def test_lines_that_pass_results_on_are_named_together():
    (finding,) = again(of_arrays(over_lines))

    assert finding.title == "`squares = x * x` and 1 more line compute the same values 20 times."
    assert "keep the result (64.0 MiB)" in finding.change


def test_lines_that_update_one_array_are_named_together():
    (finding,) = again(of_arrays(scaled_in_place))

    assert "and 1 more line compute the same values 20 times" in finding.title
    saved = of_arrays(scaled_in_place).duration_ns - of_arrays(once).duration_ns
    assert finding.saved_ns == pytest.approx(saved, rel=0.05)


def test_a_line_whose_first_rounds_differ_is_named():
    (finding,) = again(of_arrays(by_a_function_that_did_more_at_first))

    assert "computes the same values 158 times" in finding.title


def of_which_a_part_changes(cp):
    x, y = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        length = cp.elementwise("sqrt", x * x + y * y)
        cp.kernel("suppress", [length], [x])


def test_a_part_of_a_line_is_named_as_such_and_saves_nothing_in_one_kernel_for_the_line():
    found = findings(of_arrays(of_which_a_part_changes), small=True)
    fused = next(each for each in found if each.rule == "R08")
    (part,) = (each for each in found if each.rule == "R57")

    line = '`length = cp.elementwise("sqrt", x * x + y * y)`'
    assert part.title == f"A part of {line} (`multiply`) computes the same values 20 times."
    assert fused.title.startswith(line)
    assert part.saved_ns > part.further_ns == 0
