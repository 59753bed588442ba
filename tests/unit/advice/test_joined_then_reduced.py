"""R63: arrays that a program joins to one, of which it reduces what it computes."""

import pytest

from tests.unit.advice.kept_lists import MIB, SIZE, Paths, waiting
from tests.unit.advice.timed_programs import timed

CAT = "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<...>(...)"
ABOVE = "void at::native::vectorized_elementwise_kernel<4, compare_scalar_kernel<float>>(...)"
SUM = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<long, "
    "at::native::func_wrapper_t<long, at::native::sum_functor<long, long, long> >(...)"
)
DEVIATION = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
    "at::native::WelfordOps<float, float, int> >(...)"
)
PATHS = 10


class Shares(Paths):
    """The share of each path that is above a value, of all paths joined."""

    def joined(self, paths):
        whole = self.gpu.empty(SIZE * len(paths))
        self.gpu.launch(CAT, duration=1e-4, reads=paths, writes=[whole])
        return whole

    def above(self, array, *others):
        result = self.gpu.empty(array.nbytes // 2)
        self.gpu.launch(ABOVE, duration=1e-4, reads=[array, *others], writes=[result])
        return result

    def reduced(self, array, name=SUM, size=512):
        result = self.gpu.empty(size)
        self.gpu.launch(name, duration=1e-4, reads=[array], writes=[result])
        return result


def at_last(gpu):
    shares = Shares(gpu)
    paths = [shares.path() for _ in range(PATHS)]
    whole = shares.joined(paths)
    del paths
    shares.combine([shares.reduced(shares.above(whole))])


def at_once(gpu):
    shares = Shares(gpu)
    sums = []
    for _ in range(PATHS):
        path = shares.path()
        sums.append(shares.reduced(shares.above(path)))
        del path
    shares.combine(sums)


def of_a_deviation(gpu):
    shares = Shares(gpu)
    paths = [shares.path() for _ in range(PATHS)]
    whole = shares.joined(paths)
    del paths
    shares.combine([shares.reduced(whole, DEVIATION)])


def around_the_mean_of_all(gpu):
    shares = Shares(gpu)
    paths = [shares.path() for _ in range(PATHS)]
    whole = shares.joined(paths)
    del paths
    mean = shares.reduced(whole)
    shares.combine([shares.reduced(shares.above(whole, mean))])


def of_a_large_result(gpu):
    shares = Shares(gpu)
    paths = [shares.path() for _ in range(PATHS)]
    whole = shares.joined(paths)
    del paths
    shares.combine([shares.reduced(whole, size=SIZE * PATHS // 2)])


def that_is_fetched(gpu):
    shares = Shares(gpu)
    paths = [shares.path() for _ in range(PATHS)]
    whole = shares.joined(paths)
    del paths
    shares.combine([shares.reduced(shares.above(whole))])
    gpu.copy_to_host(whole)


def that_meets_another_array(gpu):
    shares = Shares(gpu)
    paths = [shares.path() for _ in range(PATHS)]
    whole, other = shares.joined(paths), gpu.empty(SIZE * PATHS)
    gpu.launch("fill", duration=1e-4, writes=[other])
    del paths
    shares.combine([shares.reduced(shares.above(whole, other))])


def of_which_one_is_needed_later(gpu):
    shares = Shares(gpu)
    paths = [shares.path() for _ in range(PATHS)]
    whole = shares.joined(paths)
    shares.combine([shares.reduced(shares.above(whole))])
    shares.combine([paths[3]])


def after_a_number_of_the_host(gpu):
    shares = Shares(gpu)
    paths = [shares.path() for _ in range(PATHS)]
    gpu.copy_to_host(shares.state)
    whole = shares.joined(paths)
    del paths
    shares.combine([shares.reduced(shares.above(whole))])


def test_arrays_that_are_joined_to_be_reduced_are_found_and_following_saves_what_was_predicted():
    before, after = timed(at_last), timed(at_once)
    (finding,) = waiting(at_last)

    saved = before.peak().bytes - after.peak().bytes
    assert finding.saved_bytes == pytest.approx(saved, abs=2 * SIZE)
    assert finding.title == (
        f"{(PATHS - 1) * SIZE / MIB:.1f} MiB of the peak is kept until "
        "`whole = shares.joined(paths)` joins the arrays, which are only reduced."
    )
    assert waiting(at_once) == []


@pytest.mark.parametrize(
    "program",
    [
        of_a_deviation,
        around_the_mean_of_all,
        of_a_large_result,
        that_is_fetched,
        that_meets_another_array,
        of_which_one_is_needed_later,
        after_a_number_of_the_host,
    ],
)
def test_what_needs_all_arrays_at_once_is_no_finding(program):
    assert waiting(program) == []
