"""R68: sorts of which one element is used."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.training import installed

ROUNDS, SIZE = 10, 8 * MI
MERGE = "void cub::detail::merge_sort::DeviceMergeSortMergeKernel<long*>(long*)"


class _Parts:
    """An array of which a part is the whole, to write any index after it."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, _):
        return self.array


def _sorted(array, axis=-1, descending=False):
    del axis, descending
    cp = array.library
    copied, order = cp.elementwise("copy", array), cp.empty(array.size, "int64")
    for _ in range(8):
        cp.kernel(MERGE, [copied, order], [copied, order])
    return _Parts(order)


def _least(array, axis=-1):
    del axis
    cp = array.library
    result = cp.empty(4096, "int64")
    cp.kernel("cupy_argmin", [array], [result], duration=array.memory.nbytes / 1.25e12)
    return result


argsort = installed(_sorted, "cupy/_sorting/sort.py", "argsort")
sort = installed(_sorted, "cupy/_sorting/sort.py", "sort")
argmin = installed(_least, "cupy/_sorting/search.py", "argmin")
randperm = installed(_sorted, "cupy/_sorting/sort.py", "randperm")
median = installed(_sorted, "cupy/_statistics/order.py", "median")


def rounds(cp):
    state = cp.uploaded(SIZE)
    for step in range(ROUNDS):
        state += float(step)
        yield state


def takes_the_first(cp):
    for d in rounds(cp):
        near = argsort(d, axis=1)[:, 0]
        near.sum()


def finds_the_first(cp):
    for d in rounds(cp):
        near = argmin(d, axis=1)
        near.sum()


def takes_the_last(cp):
    for d in rounds(cp):
        top = sort(d)[..., -1]
        top.sum()


def takes_the_first_of_descending(cp):
    for d in rounds(cp):
        top = argsort(d, axis=1, descending=True)[:, 0]
        top.sum()


def takes_the_last_of_descending(cp):
    for d in rounds(cp):
        near = argsort(d, 1, True)[:, -1]
        near.sum()


def takes_the_first_of_an_unknown_order(cp, descending=True):
    for d in rounds(cp):
        some = argsort(d, axis=1, descending=descending)[:, 0]
        some.sum()


def takes_the_first_of_an_unnamed_order(cp, descending=True):
    for d in rounds(cp):
        some = argsort(d, 1, descending)[:, 0]
        some.sum()


def takes_the_first_of_an_unnamed_axis(cp, axis=0):
    for d in rounds(cp):
        some = argsort(d, axis)[..., 0]
        some.sum()


def takes_the_first_with_other_options(cp):
    options = {"axis": 0}
    for d in rounds(cp):
        some = argsort(d, **options)[..., 0]
        some.sum()


def takes_the_first_of_packed_arguments(cp):
    for d in rounds(cp):
        packed = d, 0
        some = argsort(*packed)[..., 0]
        some.sum()


def takes_a_row_of_orders(cp):
    for d in rounds(cp):
        near = argsort(d, axis=1)[0]
        near.sum()


def takes_what_may_be_a_row(cp):
    for d in rounds(cp):
        near = argsort(d)[:, 0]
        near.sum()


def takes_the_first_few(cp):
    for d in rounds(cp):
        near = argsort(d, axis=1)[:, :4]
        near.sum()


def keeps_the_order(cp):
    for d in rounds(cp):
        near = (order := argsort(d, axis=1))[:, 0]
        near.sum(), order[:, 1].sum()


def takes_the_first_of_one_of_two(cp):
    for d in rounds(cp):
        near = argsort(d, axis=1)[:, 0] + argsort(d, axis=1)[:, 1]
        near.sum()


def takes_the_first_beside_a_median(cp):
    for d in rounds(cp):
        near = argsort(d, axis=1)[:, 0] + median(d)[:, 0]
        near.sum()


def takes_the_first_in_a_random_order(cp):
    for d in rounds(cp):
        some = argsort(d, axis=1)[:, 0] + randperm(d).array
        some.sum()


def of_sorts(program):
    found = findings(of_arrays(program), small=True)
    return [each for each in found if each.rule == "R68" and "sorts" in each.title]


def test_a_sort_for_the_first_element_is_found_and_a_reduction_saves_what_was_predicted():
    (finding,) = of_sorts(takes_the_first)

    saved = of_arrays(takes_the_first).duration_ns - of_arrays(finds_the_first).duration_ns
    assert finding.saved_ns == pytest.approx(saved, rel=0.1)
    assert finding.title.endswith("sorts, and uses only the smallest element along that axis.")
    assert "Use `argmin` along the same axis instead of `argsort`." in finding.change
    assert of_sorts(finds_the_first) == []


def test_the_last_of_sorted_values_is_their_maximum():
    (finding,) = of_sorts(takes_the_last)

    assert "only the largest element" in finding.title
    assert "Use `max`" in finding.change


@pytest.mark.parametrize(
    ("program", "extreme", "instead"),
    [
        (takes_the_first_of_descending, "largest", "argmax"),
        (takes_the_last_of_descending, "smallest", "argmin"),
    ],
)
def test_the_first_in_descending_order_is_the_largest(program, extreme, instead):
    (finding,) = of_sorts(program)

    assert f"only the {extreme} element" in finding.title
    assert f"Use `{instead}` along" in finding.change


@pytest.mark.parametrize(
    "program",
    [
        takes_the_first_of_an_unknown_order,
        takes_the_first_of_an_unnamed_order,
        takes_the_first_of_an_unnamed_axis,
        takes_the_first_with_other_options,
        takes_the_first_of_packed_arguments,
        takes_a_row_of_orders,
        takes_what_may_be_a_row,
        takes_the_first_few,
        keeps_the_order,
        takes_the_first_of_one_of_two,
        takes_the_first_beside_a_median,
        takes_the_first_in_a_random_order,
    ],
)
def test_sorts_of_which_more_is_used_are_no_finding(program):
    assert of_sorts(program) == []
