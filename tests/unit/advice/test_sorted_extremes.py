"""R68: sorts of which the first or the last elements are used."""

from types import FunctionType

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice import arrays
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.training import installed

ROUNDS, SIZE = 10, 8 * MI
MERGE = "void cub::detail::merge_sort::DeviceMergeSortMergeKernel<long*>(long*)"
# Of PyTorch: for many rows, for one row, and for short ones.
BEFORE_ROWS = "at::native::(anonymous namespace)::fill_reverse_indices_kernel(long*, int)"
MANY_ROWS = "void cub::detail::radix_sort::DeviceSegmentedRadixSortKernel<float, long, int>"
ROW = "void cub::detail::radix_sort::DeviceRadixSortExclusiveSumKernel<float, unsigned int>"
SHORT_ROWS = "void at::native::radixSortKVInPlace<2, -1, 128, 32, float, long, unsigned int>"
GATHER = "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>"


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


def native(function):
    """Return a function without a frame, as one of C++."""
    code = function.__code__.replace(co_filename=arrays.__file__)
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__)


class _Pair:
    """What PyTorch's `sort` and `topk` return."""

    def __init__(self, values, indices):
        self.values, self.indices = _Parts(values), _Parts(indices)

    def __getitem__(self, number):
        return (self.values, self.indices)[number]


def _sort(tensor, dim=-1, descending=False, stable=False):
    del dim, descending, stable
    array, cp = tensor.array, tensor.array.library
    values, indices = cp.elementwise("copy", array), cp.empty(array.size, "int64")
    order, area = cp.empty(array.size, "int64"), cp.empty(3 * array.size)
    cp.kernel(BEFORE_ROWS, [], [order])
    for name in tensor.kernels:
        cp.kernel(name, [array, order, area], [values, indices, area])
        order = indices
    return _Pair(values, indices)


def _argsort(tensor, dim=-1, descending=False):
    return _sort(tensor, dim, descending).indices


def _topk(tensor, k, dim=-1, largest=True):
    del dim, largest
    array, cp = tensor.array, tensor.array.library
    values, indices = cp.empty(128 * k), cp.empty(128 * k, "int64")
    # It finds the digits of the least one in turn.
    for _ in range(8):
        cp.kernel(GATHER, [array], [values, indices])
    return _Pair(values, indices)


class Tensor:
    """PyTorch's tensor, of which only the computed part has a size."""

    def __init__(self, array, kernels=(MANY_ROWS,) * 4):
        self.array, self.kernels = array, kernels

    sort, argsort, topk = native(_sort), native(_argsort), native(_topk)


_sort, _argsort = native(_sort), native(_argsort)


class torch:  # noqa: N801 - as the module
    """PyTorch's functions."""

    sort, topk = _sort, native(_topk)


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


def takes_five(cp):
    for d in rounds(cp):
        z = Tensor(d)
        top = z.sort(dim=1, descending=True)[1][:, :5]
        top.sum()


def selects_five(cp):
    for d in rounds(cp):
        z = Tensor(d)
        top = z.topk(5, dim=1)[1][:, :]
        top.sum()


def takes_the_values(cp):
    for d in rounds(cp):
        z = Tensor(d)
        top = z.sort(1, True).values[:, :5]
        top.sum()


def takes_some_of_a_function(cp):
    for d in rounds(cp):
        z = Tensor(d)
        top = torch.sort(z, 1, True)[0][:, :5]
        top.sum()


def takes_the_nearest_others(cp):
    for d in rounds(cp):
        z = Tensor(d)
        near = z.argsort(1)[:, 1:6]
        near.sum()


def takes_the_last_few(cp):
    for d in rounds(cp):
        z = Tensor(d)
        top = z.argsort(dim=-1)[..., -5:]
        top.sum()


def takes_the_third(cp):
    for d in rounds(cp):
        z = Tensor(d)
        third = z.sort(dim=1)[0][:, 2]
        third.sum()


def takes_the_least_value(cp):
    for d in rounds(cp):
        z = Tensor(d)
        least = z.sort(dim=1)[0][:, 0]
        least.sum()


def takes_five_of_one_row(cp):
    for d in rounds(cp):
        z = Tensor(d, (ROW, "DeviceRadixSortOnesweepKernel", "DeviceRadixSortOnesweepKernel"))
        top = z.argsort(descending=True)[:5]
        top.sum()


def takes_five_or_selects_them(cp, fast=False):
    for d in rounds(cp):
        z = Tensor(d)
        top = z.topk(5, dim=1)[0] if fast else z.sort(dim=1, descending=True)[0][:, :5]
        getattr(top, "array", top).sum()


def takes_five_or_selects_by_a_function(cp, fast=False):
    for d in rounds(cp):
        z = Tensor(d)
        top = torch.topk(z, 5)[0] if fast else z.sort(dim=1, descending=True)[0][:, :5]
        getattr(top, "array", top).sum()


def takes_five_or_selects_a_number(cp, k=0):
    for d in rounds(cp):
        z = Tensor(d)
        top = z.topk(k, 1)[0] if k else z.sort(dim=1, descending=True)[0][:, :5]
        top.sum()


def takes_five_rows(cp):
    for d in rounds(cp):
        z = Tensor(d)
        some = z.argsort(descending=True)[:5]
        some.sum()


def takes_five_of_few_rows(cp):
    for d in rounds(cp):
        z = Tensor(d, (ROW, "DeviceRadixSortOnesweepKernel") * 8)
        some = z.argsort(descending=True)[:5]
        some.sum()


def takes_a_row_of_values(cp):
    for d in rounds(cp):
        z = Tensor(d, (ROW, "DeviceRadixSortOnesweepKernel"))
        some = z.argsort(descending=True)[0]
        some.sum()


def takes_five_of_short_rows(cp):
    for d in rounds(cp):
        z = Tensor(d, (SHORT_ROWS,))
        top = z.sort(dim=1, descending=True)[1][:, :5]
        top.sum()


def takes_a_number(cp, k=5):
    for d in rounds(cp):
        z = Tensor(d)
        top = z.sort(dim=1, descending=True)[1][:, :k]
        top.sum()


def takes_most(cp):
    for d in rounds(cp):
        z = Tensor(d)
        top = z.sort(dim=1, descending=True)[1][:, :3000]
        top.sum()


def leaves_some_out(cp):
    for d in rounds(cp):
        z = Tensor(d)
        most = z.sort(dim=1)[0][:, 5:]
        most.sum()


def leaves_the_last_out(cp):
    for d in rounds(cp):
        z = Tensor(d)
        most = z.sort(dim=1)[0][:, :-5]
        most.sum()


def leaves_both_ends_out(cp):
    for d in rounds(cp):
        z = Tensor(d)
        most = z.sort(dim=1)[0][:, 2:-2]
        most.sum()


def takes_each_fifth(cp):
    for d in rounds(cp):
        z = Tensor(d)
        some = z.sort(dim=1)[0][:, :1000:5]
        some.sum()


def takes_five_along_another_axis(cp):
    for d in rounds(cp):
        z = Tensor(d)
        some = z.sort(dim=0)[0][:, :5]
        some.sum()


def takes_five_of_a_stable_sort(cp):
    for d in rounds(cp):
        z = Tensor(d)
        top = z.sort(dim=1, stable=True)[0][:, :5]
        top.sum()


def takes_some_pairs(cp):
    for d in rounds(cp):
        z = Tensor(d)
        values = z.sort(dim=1)[:2]
        values[0].array.sum()


def uses_the_order_later(cp):
    for d in rounds(cp):
        z = Tensor(d)
        top = (order := z.argsort(1))[:, :5]
        top.sum(), order.array.sum()


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


def test_selected_elements_save_what_was_predicted():
    before, after = of_arrays(takes_five), of_arrays(selects_five)
    (finding,) = of_sorts(takes_five)

    measured = before.duration_ns - after.duration_ns
    assert 0.7 * measured < finding.saved_ns < measured
    lower = before.peak().bytes - after.peak().bytes
    assert finding.saved_bytes == pytest.approx(lower, rel=0.01)
    assert finding.title.endswith("sorts, and uses only the 5 largest elements along that axis.")
    assert "Use `topk(5, dim)` instead of `sort`, and the same of its `indices`" in finding.change
    assert of_sorts(selects_five) == []


@pytest.mark.parametrize(
    ("program", "elements", "instead"),
    [
        (takes_the_values, "5 largest elements", "`topk(5, dim)` instead of `sort`"),
        (takes_some_of_a_function, "5 largest elements", "`topk(5, dim)` instead of `sort`"),
        (takes_the_nearest_others, "6 smallest elements", "`topk(6, dim, largest=False)`"),
        (takes_the_last_few, "5 largest elements", "`topk(5, dim)` instead of `argsort`"),
        (takes_the_third, "3 smallest elements", "`topk(3, dim, largest=False)`"),
        (takes_the_least_value, "smallest element", "`min` along the same axis instead of `sort`"),
        (takes_five_of_one_row, "5 largest elements", "`topk(5, dim)` instead of `argsort`"),
        (takes_five_or_selects_them, "5 largest elements", "`topk(5, dim)` instead of `sort`"),
        (takes_five_or_selects_by_a_function, "5 largest elements", "`topk(5, dim)` instead"),
    ],
)
def test_few_elements_of_a_sort_of_torch_are_found(program, elements, instead):
    (finding,) = of_sorts(program)

    assert f"only the {elements} along" in finding.title
    assert instead in finding.change


@pytest.mark.parametrize(
    "program",
    [
        takes_five_or_selects_a_number,
        takes_five_rows,
        takes_five_of_few_rows,
        takes_a_row_of_values,
        takes_five_of_short_rows,
        takes_a_number,
        takes_most,
        leaves_some_out,
        leaves_the_last_out,
        leaves_both_ends_out,
        takes_each_fifth,
        takes_five_along_another_axis,
        takes_five_of_a_stable_sort,
        takes_some_pairs,
        uses_the_order_later,
    ],
)
def test_sorts_of_torch_of_which_more_may_be_used_are_no_finding(program):
    assert of_sorts(program) == []
