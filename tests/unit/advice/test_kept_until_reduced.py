"""R63: lists of arrays that wait for a reduction of each."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.kept_lists import MIB, ROUNDS, SIZE, Paths, waiting
from tests.unit.advice.timed_programs import timed


def means_at_last(gpu):
    paths = Paths(gpu)
    kept = list(paths.paths())
    means = [paths.mean(each) for each in kept]
    del kept
    paths.combine(means)


def means_at_once(gpu):
    paths = Paths(gpu)
    paths.combine([paths.mean(each) for each in paths.paths()])


def by_torch_at_last(gpu):
    """An address that the kernel does not use is among its arguments."""
    paths = Paths(gpu)
    kept = list(paths.paths())
    name = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, ...> >(...)"
    means = [paths.mean(each, paths.state, name=name) for each in kept]
    del kept
    paths.combine(means)


def made_at_last(gpu):
    """Work areas, of which each is overwritten before anything reads it."""
    areas = [gpu.empty(SIZE) for _ in range(ROUNDS)]
    for area in areas:
        gpu.launch("make", duration=1e-4, writes=[area])
    del areas, area


def made_and_added_at_last(gpu):
    areas = [gpu.empty(SIZE) for _ in range(ROUNDS)]
    total = gpu.empty(MIB)
    for area in areas:
        gpu.launch("make", duration=1e-4, writes=[area])
        gpu.launch("add", duration=1e-5, reads=[area, total], writes=[total])
    del areas, area


def made_again_at_last(gpu):
    """What the loop has made is overwritten."""
    paths = Paths(gpu)
    kept = list(paths.paths())
    for path in kept:
        gpu.launch("make", duration=1e-4, writes=[path])
        gpu.launch("add", duration=1e-5, reads=[path, paths.state], writes=[paths.state])
    del kept, path


def of_the_last_state(gpu):
    paths = Paths(gpu)
    kept = list(paths.paths())
    means = [paths.mean(each, paths.state) for each in kept]
    del kept
    paths.combine(means)


def of_what_is_known_at_last(gpu):
    """The mean of all arrays is subtracted from each."""
    paths = Paths(gpu)
    kept = list(paths.paths())
    mean = gpu.empty(MIB)
    gpu.launch("mean of all", duration=1e-5, reads=kept, writes=[mean])
    means = [paths.mean(each, mean) for each in kept]
    del kept
    paths.combine(means)


def of_a_number_of_the_host(gpu):
    """The host reads the mean of all arrays, and passes it to the kernels."""
    paths = Paths(gpu)
    kept = list(paths.paths())
    gpu.copy_to_host(paths.state)
    means = [paths.mean(each) for each in kept]
    del kept
    paths.combine(means)


def the_best_is_used(gpu):
    paths = Paths(gpu)
    kept = list(paths.paths())
    means = [paths.mean(each) for each in kept]
    paths.combine([*means, kept[3]])
    del kept


def all_are_used(gpu):
    paths = Paths(gpu)
    kept = list(paths.paths())
    means = [paths.mean(each) for each in kept]
    for path, mean in zip(kept, means, strict=True):
        gpu.launch("scale", duration=1e-5, reads=[path, mean], writes=[paths.state])
    del kept, path


def some_rounds_later(gpu):
    """A queue, so that the kernels of a round need not wait for its reductions."""
    paths = Paths(gpu)
    kept, means = [], []
    for path in paths.paths():
        kept.append(path)
        if len(kept) > 5:
            means.append(paths.mean(kept.pop(0)))
    del path
    while kept:
        means.append(paths.mean(kept.pop(0)))
    paths.combine(means)


def results_that_are_not_small(gpu):
    paths = Paths(gpu)
    kept = list(paths.paths())
    means = [paths.mean(each, size=SIZE // 2) for each in kept]
    del kept
    paths.combine(means)


class Sizes(Paths):
    """Numbers that the host reads, each computed in two steps."""

    def size(self, path, *others, scalar=1.0, keeps=False):
        density = self.gpu.empty(SIZE // 2)
        self.gpu.launch("square", duration=1e-5, reads=[path, *others], writes=[density])
        total = self.gpu.empty(512)
        named = {"duration": 1e-5, "reads": [density], "writes": [total]}
        self.gpu.launch("cupy_add__float32_float_float32", **named, scalars=[scalar])
        self.gpu.copy_to_host(total)
        return density if keeps else None


def sizes_at_last(gpu):
    sizes = Sizes(gpu)
    kept = list(sizes.paths())
    for path in kept:
        sizes.size(path)


def sizes_at_once(gpu):
    sizes = Sizes(gpu)
    for path in sizes.paths():
        sizes.size(path)


def sizes_again_at_last(gpu):
    for _ in range(3):
        sizes_at_last(gpu)


def sizes_again_at_once(gpu):
    for _ in range(3):
        sizes_at_once(gpu)


def other_sizes_later(gpu):
    """Only the first time, each could be computed in the loop."""
    sizes_at_last(gpu)
    of_a_later_state(gpu)


def of_other_numbers(gpu):
    sizes = Sizes(gpu)
    kept = list(sizes.paths())
    for number, path in enumerate(kept):
        sizes.size(path, scalar=float(number))


def of_a_later_state(gpu):
    sizes = Sizes(gpu)
    kept = list(sizes.paths())
    for path in kept:
        sizes.size(path, sizes.state)


def that_are_kept(gpu):
    sizes = Sizes(gpu)
    kept = list(sizes.paths())
    densities = [sizes.size(path, keeps=True) for path in kept]
    sizes.combine(densities)


def after_a_number_of_the_host(gpu):
    sizes = Sizes(gpu)
    kept = list(sizes.paths())
    gpu.copy_to_host(sizes.state)
    for path in kept:
        sizes.size(path)


class Largest(Paths):
    """Large values, found by a function that first fills what it allocates for itself."""

    def made(self):
        kept = []
        make = {"name": "make", "duration": 1e-4}
        for _ in range(ROUNDS):
            kept.append(x := self.gpu.empty(SIZE)), self.gpu.launch(**make, writes=[x])
        return kept

    def largest(self, path, *others):
        counts, values = self.gpu.empty(MIB // 4), self.gpu.empty(MIB // 4)
        self.gpu.launch("clear", duration=1e-6, reads=others, writes=[counts])
        self.gpu.launch("count", duration=1e-5, reads=[path], writes=[counts])
        self.gpu.launch("gather", duration=1e-5, reads=[path, counts], writes=[values])
        return values


def largest_at_last(gpu):
    largest = Largest(gpu)
    kept = largest.made()
    values = [largest.largest(each) for each in kept]
    del kept
    largest.combine(values)


def largest_at_once(gpu):
    largest, values = Largest(gpu), []
    for _ in range(ROUNDS):
        path = gpu.empty(SIZE)
        gpu.launch("make", duration=1e-4, writes=[path])
        values.append(largest.largest(path))
    largest.combine(values)


def largest_of_a_later_state(gpu):
    largest = Largest(gpu)
    kept = largest.made()
    gpu.launch("step", duration=1e-4, writes=[largest.state])
    values = [largest.largest(each, largest.state) for each in kept]
    del kept
    largest.combine(values)


def fetched_at_last(gpu):
    paths = Paths(gpu)
    kept = list(paths.paths())
    for path in kept:
        gpu.copy_to_host(path)


def fetched_at_once(gpu):
    for path in Paths(gpu).paths():
        gpu.copy_to_host(path)


def test_arrays_that_wait_are_found_and_reducing_them_at_once_saves_what_was_predicted():
    before, after = timed(means_at_last), timed(means_at_once)
    (finding,) = waiting(means_at_last)

    assert findings(before)[0] == finding
    assert finding.saved_bytes == pytest.approx(before.peak().bytes - after.peak().bytes, abs=SIZE)
    assert finding.title == (
        "72.0 MiB of the peak is kept until `means = [paths.mean(each) for each in kept]` reduces "
        "each array to a small one."
    )


def test_arrays_that_are_reduced_in_several_steps_are_found_too():
    before, after = timed(sizes_at_last), timed(sizes_at_once)
    (finding,) = waiting(sizes_at_last)

    assert finding.saved_bytes == pytest.approx(before.peak().bytes - after.peak().bytes, abs=SIZE)
    assert finding.title == (
        "64.0 MiB of the peak is kept until `sizes.size(path)` reduces each array to a small one."
    )
    assert waiting(sizes_at_once) == []


def test_what_a_program_repeats_is_found_each_time():
    before, after = timed(sizes_again_at_last), timed(sizes_again_at_once)
    (finding,) = waiting(sizes_again_at_last)

    assert finding.saved_bytes == pytest.approx(before.peak().bytes - after.peak().bytes, abs=SIZE)
    assert waiting(sizes_again_at_once) == []


def test_arrays_that_have_to_wait_later_keep_the_peak_as_high():
    assert waiting(other_sizes_later) == []


def test_a_loop_of_one_line_and_a_function_that_fills_its_work_area_first_are_found():
    before, after = timed(largest_at_last), timed(largest_at_once)
    (finding,) = waiting(largest_at_last)

    assert finding.saved_bytes == pytest.approx(before.peak().bytes - after.peak().bytes, abs=SIZE)
    assert waiting(largest_of_a_later_state) == []


def test_arrays_that_wait_for_their_copies_to_the_host_are_not_called_reduced():
    before, after = timed(fetched_at_last), timed(fetched_at_once)
    (finding,) = waiting(fetched_at_last)

    assert finding.saved_bytes == pytest.approx(
        before.peak().bytes - after.peak().bytes, abs=2 * SIZE
    )
    assert finding.title == (
        "64.0 MiB of the peak is kept until `gpu.copy_to_host(path)` copies each array to the host."
    )
    assert finding.change.startswith("Copy each array to the host where it is made")
    assert waiting(fetched_at_once) == []


@pytest.mark.parametrize(
    "program", [of_other_numbers, of_a_later_state, that_are_kept, after_a_number_of_the_host]
)
def test_steps_that_have_to_wait_are_no_finding(program):
    assert waiting(program) == []


def test_torch_reduces_one_array_whatever_addresses_it_passes():
    (finding,) = waiting(by_torch_at_last)

    assert finding.saved_bytes == waiting(means_at_last)[0].saved_bytes


def test_what_a_reduction_allocates_for_its_steps_is_no_result():
    def program(cp):
        state, kept = cp.random(MI), []
        for _ in range(8):
            kept.append(cp.elementwise("exp", cp.random(4 * MI)))
            state += 1.0
        means = [cp.mean(each) for each in kept]
        del kept
        cp.kernel("all", means, [cp.empty(1)])

    found = [each for each in findings(of_arrays(program)) if each.rule == "R63"]

    assert [each.saved_bytes // MI for each in found] == [7 * 16]


@pytest.mark.parametrize(
    "program",
    [
        means_at_once,
        of_the_last_state,
        of_what_is_known_at_last,
        of_a_number_of_the_host,
        the_best_is_used,
        all_are_used,
        some_rounds_later,
        results_that_are_not_small,
        made_at_last,
        made_and_added_at_last,
        made_again_at_last,
    ],
)
def test_what_looks_alike_does_not_wait(program):
    assert waiting(program) == []
