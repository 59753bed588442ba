"""R63: lists of arrays that wait for a reduction of each."""

from itertools import accumulate

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.timed_programs import timed

MIB = 1 << 20
ROUNDS, SIZE = 10, 8 * MIB


class Paths:
    """Arrays of a simulation, and what is computed of each."""

    def __init__(self, gpu):
        self.gpu, self.state = gpu, gpu.empty(MIB)

    def path(self):
        path = self.gpu.empty(SIZE)
        self.gpu.launch("make", duration=1e-4, writes=[path])
        self.gpu.launch("step", duration=1e-4, reads=[path, self.state], writes=[self.state])
        return path

    def mean(self, path, *others, size=MIB // 2, name="mean"):
        result = self.gpu.empty(size)
        self.gpu.launch(name, duration=1e-5, reads=[path, *others], writes=[result])
        return result

    def paths(self):
        for _ in range(ROUNDS):
            yield self.path()

    def combine(self, arrays):
        self.gpu.launch("all", duration=1e-5, reads=arrays, writes=[self.state])


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


def waiting(program):
    return [each for each in findings(timed(program), small=True) if each.rule == "R63"]


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
    ],
)
def test_what_looks_alike_does_not_wait(program):
    assert waiting(program) == []


class Monitor(Paths):
    """Outputs of two layers that hooks keep, and kernels of PyTorch that reduce each at last."""

    STEPS, LAYERS = 12, 2

    def __init__(self, gpu):
        super().__init__(gpu)
        self.outputs = [[] for _ in range(self.LAYERS)]

    def train(self, *, at_once=False, stale=(), uses_first=False):
        for step in range(self.STEPS):
            inner = None
            for layer in range(self.LAYERS):
                # An activation of the same line, which the step itself uses.
                output, inner = self.gpu.empty(SIZE), self.gpu.empty(SIZE)
                self.gpu.launch("make", duration=1e-4, writes=[output, inner])
                self.gpu.launch("step", duration=1e-4, reads=[inner], writes=[self.state])
                kept = self.share(output) if at_once else output
                self.outputs[layer].append(kept)
                del output, kept
            first = self.outputs[0][0]
            read = [first] if uses_first or step in stale else []
            self.gpu.launch("backward", duration=1e-4, reads=[inner, *read], writes=[self.state])

    def share(self, output, *others, scalar=1.0):
        magnitude, total = self.gpu.empty(SIZE // 2), self.gpu.empty(512)
        name = "void at::native::vectorized_elementwise_kernel<4, ...>(...)"
        named = {"name": name, "duration": 1e-5, "writes": [magnitude], "scalars": [scalar]}
        self.gpu.launch(reads=[output, *others], **named)
        name = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, ...> >(...)"
        self.gpu.launch(name, duration=1e-5, reads=[magnitude], writes=[total])
        return total

    def report(self, *others):
        """Reduce each output of a layer, and join the results of the layer."""
        shares = []
        for outputs in self.outputs:
            of_layer = []
            for number, output in enumerate(outputs):
                # Bytes that the arguments of PyTorch's kernels have unset differ.
                of_layer.append(self.share(output, *others, scalar=float(number)))
            shares.append(self.gpu.empty(512))
            self.gpu.launch("CatArray", duration=1e-6, reads=of_layer, writes=[shares[-1]])
        self.combine(shares)


def monitored(gpu, **options):
    monitor = Monitor(gpu)
    monitor.train(**options)
    monitor.report()


def monitored_at_once(gpu):
    monitor = Monitor(gpu)
    monitor.train(at_once=True)
    monitor.combine([each for outputs in monitor.outputs for each in outputs])


def by_the_last_state(gpu):
    monitor = Monitor(gpu)
    monitor.train()
    monitor.report(monitor.state)


def by_the_first_output(gpu):
    """Each output is compared with what the reductions before it have left."""
    monitor = Monitor(gpu)
    monitor.train()
    for outputs in monitor.outputs:
        last = gpu.empty(512)
        for output in outputs:
            last = monitor.share(output, last)


def used_again_at_last(gpu):
    monitor = Monitor(gpu)
    monitor.train()
    monitor.report()
    monitor.combine([monitor.outputs[0][3]])


@pytest.mark.parametrize("options", [{}, {"stale": [Monitor.STEPS - 1]}, {"uses_first": True}])
def test_outputs_that_hooks_keep_for_a_report_are_found_also_if_the_loop_uses_the_first(options):
    (finding,) = waiting(lambda gpu: monitored(gpu, **options))

    before, after = timed(lambda gpu: monitored(gpu, **options)), timed(monitored_at_once)
    saved = before.peak().bytes - after.peak().bytes
    assert finding.saved_bytes == pytest.approx(saved, abs=4 * SIZE)
    assert waiting(monitored_at_once) == []


@pytest.mark.parametrize("program", [by_the_last_state, by_the_first_output, used_again_at_last])
def test_outputs_whose_report_needs_more_than_each_of_them_are_no_finding(program):
    assert waiting(program) == []


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
