"""R63: arrays that wait for their sum."""

from itertools import accumulate

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays


class Samples:
    """Samples of a state, and what becomes of them."""

    def __init__(self, cp):
        self.cp, self.state = cp, cp.random(4 * MI)

    def each(self, count=16):
        for _ in range(count):
            sample = self.cp.random(4 * MI)
            self.cp.kernel("metropolis", [self.state], [sample])
            self.state += 1.0
            yield sample

    def all(self):
        return list(self.each())


def added_at_last(cp):
    kept = Samples(cp).all()
    total = cp.empty(4 * MI)
    cp.gpu.fill(total.memory)
    for each in kept:
        total += each
    del kept, each
    float(total)


def added_at_once(cp):
    total = cp.empty(4 * MI)
    cp.gpu.fill(total.memory)
    for each in Samples(cp).each():
        total += each
    float(total)


def added_to_the_first(cp):
    kept = Samples(cp).all()
    total = cp.elementwise("copy", kept[0])
    for each in kept[1:]:
        total += each
    del kept, each
    float(total)


def added_to_the_first_at_once(cp):
    total = None
    for each in Samples(cp).each():
        if total is None:
            total = cp.elementwise("copy", each)
        else:
            total += each
    float(total)


def summed_at_last(cp):
    kept = Samples(cp).all()
    total = sum(kept[1:], kept[0])
    del kept
    float(total)


def summed_at_once(cp):
    total = None
    for each in Samples(cp).each():
        total = each if total is None else total + each
    float(total)


def squares_at_last(cp):
    kept = Samples(cp).all()
    total = cp.random(4 * MI)
    for each in kept:
        total += each * each
    del kept, each
    float(total)


def squares_at_once(cp):
    total = cp.random(4 * MI)
    for each in Samples(cp).each():
        total += each * each
    float(total)


@pytest.mark.parametrize(
    ("program", "following"),
    [
        (added_at_last, added_at_once),
        (added_to_the_first, added_to_the_first_at_once),
        (summed_at_last, summed_at_once),
        (squares_at_last, squares_at_once),
    ],
)
def test_arrays_that_wait_to_be_accumulated_are_accumulated_in_the_loop(program, following):
    before, after = of_arrays(program), of_arrays(following)
    (finding,) = (each for each in findings(before) if each.rule == "R63")

    saved = before.peak().bytes - after.peak().bytes
    assert "updates its result with one array after the other" in finding.title
    # The last two arrays of the list, with what their rounds make, are not counted.
    assert saved - 16 * MI <= finding.saved_bytes <= saved
    assert [each.rule for each in findings(after) if each.rule == "R63"] == []


def in_the_reverse_order(cp):
    kept = Samples(cp).all()
    total = cp.random(4 * MI)
    for each in reversed(kept):
        total += each
    float(total)


def weighted_by_what_is_known_at_last(cp):
    samples = Samples(cp)
    kept = samples.all()
    total, weight = cp.random(4 * MI), cp.elementwise("exp", samples.state)
    for each in kept:
        total += each * weight
    float(total)


def of_which_each_needs_the_sum(cp):
    total = cp.random(4 * MI)
    kept = [total * 2.0 for _ in range(16)]
    for each in kept:
        total += each
    float(total)


def used_by_the_loop(cp):
    samples, total, kept = Samples(cp), cp.random(4 * MI), []
    for each in samples.each():
        kept.append(each)
        cp.kernel("mix", [total], [samples.state])
    for each in kept:
        total += each
    float(total)


def with_all_partial_sums(cp):
    sums = list(accumulate(Samples(cp).all()))
    for each in sums:
        float(each)


def with_two_passes(cp):
    kept = Samples(cp).all()
    total, squares = cp.random(4 * MI), cp.random(4 * MI)
    for each in kept:
        total += each
    for each in kept:
        squares += each * total
    float(squares)


def of_arrays_that_are_only_uploaded(cp):
    kept = [cp.uploaded(4 * MI) for _ in range(16)]
    total = cp.random(4 * MI)
    for each in kept:
        total += each
    float(total)


@pytest.mark.parametrize(
    "program",
    [
        of_arrays_that_are_only_uploaded,
        in_the_reverse_order,
        weighted_by_what_is_known_at_last,
        of_which_each_needs_the_sum,
        used_by_the_loop,
        with_all_partial_sums,
        with_two_passes,
    ],
)
def test_arrays_that_have_to_wait_for_their_sum_are_no_finding(program):
    assert [each for each in findings(of_arrays(program)) if each.rule == "R63"] == []
