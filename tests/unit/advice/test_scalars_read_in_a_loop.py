"""R18: what a loop saves without its reads, where the GPU, launches or the host limit it."""

from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.examples import examples
from tests.unit.advice.programs import without_frames
from tests.unit.advice.timed_programs import timed

STEPS = 30
ELEMENTS = 64
LAST_NS = 25_000
microseconds = st.sampled_from([3, 8, 15])


def loop(*, kernels, launch, read, after, reads):
    """Return a loop of kernels, each launched by some Python, and of reads before other work."""

    def program(gpu):
        x = gpu.empty(8)
        for _ in range(STEPS):
            for kernel in kernels:
                gpu.work_on_host(launch * 1e-6)
                gpu.launch("step", duration=kernel * 1e-6, writes=[x])
            for _ in range(reads):
                gpu.work_on_host(read * 1e-6)
                _ = gpu.copy_to_host(x), gpu.synchronize()
            if after:
                gpu.work_on_host(after * 1e-6)

    return program


@examples(100)
@given(
    kernels=st.lists(st.sampled_from([2, 10, 80]), min_size=1, max_size=4),
    launch=microseconds,
    read=microseconds,
    after=st.sampled_from([0, 50, 200]),
    reads=st.integers(1, 2),
)
def test_reads_save_what_the_program_takes_less_without_them(kernels, launch, read, after, reads):
    cost = {"kernels": kernels, "launch": launch, "read": read, "after": after}
    with_reads, without = (timed(loop(**cost, reads=each)) for each in (reads, 0))
    found = findings(with_reads, small=True)
    (finding,) = (each for each in found if each.rule == "R18")

    saved = with_reads.duration_ns - without.duration_ns
    # What a read costs in Python is taken for that of a launch. The last round's reads stay.
    unknown = STEPS * reads * abs(read - launch) * 1000 + reads * LAST_NS
    assert abs(finding.saved_ns - saved) <= 0.05 * saved + unknown


def elements(count):
    """Return a loop in which an array is read in this number of copies after each kernel."""

    def program(gpu):
        x = gpu.empty(8 * ELEMENTS // count)
        for _ in range(STEPS):
            gpu.work_on_host(20e-6)
            gpu.launch("errors", duration=50e-6, writes=[x])
            for _ in range(count):
                gpu.work_on_host(5e-6)
                _ = gpu.copy_to_host(x), gpu.synchronize()

    return program


def test_of_elements_that_are_read_one_by_one_the_whole_array_is_to_be_converted():
    recording = timed(elements(ELEMENTS))
    saved = recording.duration_ns - timed(elements(1)).duration_ns
    told = findings(recording, small=True)
    (finding,) = (each for each in told if each.rule == "R18")

    assert "reads 1,919 numbers one by one and waits" in finding.title
    assert finding.change.startswith("Convert the whole array once")
    assert finding.saved_ns == pytest.approx(saved, rel=0.2)
    assert "R21" not in {each.rule for each in told}


def picks_a_part(gpu):
    image, place = gpu.empty(1 << 20), gpu.empty(8)
    parts = defaultdict(lambda: image)
    for _ in range(STEPS):
        gpu.launch("argmax", duration=2e-5, reads=[image], writes=[place])
        where = gpu.copy_to_host(place), gpu.synchronize()
        gpu.launch("subtract", duration=1e-5, writes=[parts[str(where)]])


def reads_a_loss(gpu):
    """The parts that are used have nothing to do with what is read."""
    image, loss = gpu.empty(1 << 20), gpu.empty(8)
    losses = []
    for _ in range(STEPS):
        gpu.launch("argmax", duration=2e-5, reads=[image], writes=[loss])
        losses.append((gpu.copy_to_host(loss), gpu.synchronize()))
        gpu.launch("subtract", duration=1e-5, writes=[image])


def with_parts(recording, offset_of):
    """Return a recording in which the n-th launch of `subtract` gets a part of its array."""
    tables = recording.tables
    texts = {row["id"]: row["text"] for row in tables["strings"].to_pylist()}
    launches = [
        row["correlation"]
        for row in tables["activities"].to_pylist()
        if texts.get(row["name"]) == "subtract"
    ]
    rows = tables["launch_blocks"].to_pylist()
    for row in rows:
        if row["correlation"] in launches:
            row["address"] += offset_of(launches.index(row["correlation"]))
    changed = {"launch_blocks": pa.Table.from_pylist(rows, schemas()["launch_blocks"])}
    return Recording(tables | changed, recording.manifest)


@pytest.mark.parametrize(
    ("offset_of", "is_said"),
    [
        (lambda number: 0 * number, True),
        (lambda number: 512 * number, True),
        (lambda number: 512 * (number % 3), True),
        (lambda number: 512 * (number * number % 31), False),
    ],
    ids=["whole", "in order", "in turn", "chosen"],
)
def test_a_value_that_chooses_what_the_next_work_uses_is_needed(offset_of, is_said):
    found = findings(with_parts(timed(picks_a_part), offset_of), small=True)

    assert ("R18" in {each.rule for each in found}) == is_said


def test_a_value_beside_parts_in_any_order_need_not_be_read():
    parts = with_parts(timed(reads_a_loss), lambda number: 512 * (number * number % 31))

    assert "R18" in {each.rule for each in findings(parts, small=True)}


def reads_through_pinned_memory(gpu):
    """As PyTorch's `item` does."""
    x = gpu.empty(8)
    for _ in range(STEPS):
        gpu.launch("step", duration=2e-5, writes=[x])
        _ = gpu.copy_to_host(x, pinned=True), gpu.synchronize()


def reads_one_round_later(gpu):
    x = gpu.empty(8)
    for _ in range(STEPS):
        gpu.launch("step", duration=2e-5, writes=[x])
        gpu.synchronize()
        gpu.copy_to_host(x, pinned=True)


@pytest.mark.parametrize(
    ("program", "is_said"), [(reads_through_pinned_memory, True), (reads_one_round_later, False)]
)
def test_a_copy_to_pinned_memory_is_read_if_the_host_waits_in_the_next_call(program, is_said):
    found = findings(timed(program), small=True)

    assert ("R18" in {each.rule for each in found}) == is_said


class Element:
    """An element of an array of CuPy: a comparison launches a kernel and reads its result."""

    def __init__(self, gpu, x):
        self.gpu, self.x = gpu, x

    def __gt__(self, _):
        self.gpu.work_on_host(5e-6)
        self.gpu.launch("cupy_greater__float32_float32_bool", duration=1e-6, reads=[self.x])
        self.gpu.work_on_host(5e-6)
        self.gpu.copy_to_host(self.x)
        return False


def largest(*, elements, instead=None):
    """Return a loop that compares so many elements after each kernel."""

    def program(gpu):
        x = gpu.empty(8)
        power, best = [Element(gpu, x)] * elements, Element(gpu, x)
        for _ in range(STEPS):
            gpu.work_on_host(20e-6)
            gpu.launch("errors", duration=50e-6, writes=[x])
            if instead is not None:
                instead(gpu, best, x)
            else:
                best = max(power)

    return program


def told(program):
    recording = without_frames(timed(program), "Element.__gt__")
    return [each for each in findings(recording, small=True) if each.rule == "R18"]


def test_elements_that_python_compares_one_by_one_are_to_be_compared_by_the_gpu():
    program = largest(elements=33)
    saved = timed(program).duration_ns - timed(largest(elements=1)).duration_ns
    (finding,) = told(program)

    assert finding.title.startswith("`best = max(power)` compares 960 elements one by one")
    assert finding.change == (
        "Python's `max` takes the elements one by one, with a launch and a copy for each. Let the "
        "GPU compare them: `power.max()`, or `cupy.stack(power).max()` of a list."
    )
    assert finding.saved_ns == pytest.approx(saved, rel=0.1)


def reads_larger_values(gpu, best, x):
    _ = max(best, Element(gpu, x)), gpu.synchronize()


@pytest.mark.parametrize(
    "program", [largest(elements=4), largest(elements=1, instead=reads_larger_values)]
)
def test_a_few_values_that_python_compares_are_scalars(program):
    assert all("compares" not in each.title for each in told(program))
