"""R27: operations of JAX that a loop runs outside of `jax.jit`."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from tests.unit.recording.from_activities import Timeline

US = 1000
ITERATIONS, OPERATIONS = 30, 12
UFUNC, JITTED = "jax/_src/numpy/ufunc_api", "jax/_src/pjit"


class _Jax:
    """A program whose host takes 60 µs to start an executable of XLA.

    XLA that ran before the first recording has no ranges.
    """

    def __init__(self, kernel_us=20, *, has_ranges=True):
        self.timeline, self._kernel_ns = Timeline(), kernel_us * US
        self._now = self._end = US
        self._launches, self._has_ranges = 0, has_ranges

    def copy(self, size):
        """Copy an argument in a thread of XLA, in 30 µs."""
        self._launches += 1
        called = self._now + 20 * US
        self._now = called + 10 * US
        self.timeline.call(called, self._now, thread=7, correlation=self._launches)
        begun = max(called + 8 * US, self._end)
        self._end = begun + US
        self.timeline.copy(begun, self._end, stream=2, bytes=size, correlation=self._launches)

    def run(self, line, library, *, kernels=1):
        """Run an executable of some kernels, which the user's line starts."""
        begin = self._now
        for number in range(kernels):
            self._launches += 1
            called = self._now + 10 * US
            self._now = called + 5 * US
            self.timeline.call(
                called, self._now, line=line, library=library, correlation=self._launches
            )
            begun = max(called + 8 * US, self._end + US)
            self._end = begun + self._kernel_ns
            self.timeline.kernel(begun, self._end, f"fusion_{number}", correlation=self._launches)
        self._now += 45 * US
        if not self._has_ranges:
            return
        row = {"id": self._launches, "time": begin, "end": self._now - 40 * US, "thread": 1}
        name = self.timeline.text("XlaModule:#hlo_module=jit_multiply,program_id=1#")
        self.timeline.add("ranges", row | {"name": name, "kind": "nvtx"})

    def recording(self):
        """Return the recording of all that ran."""
        self.timeline.add("devices", {"device": 0, "name": "GPU"})
        return self.timeline.recording(duration_ns=max(self._end, self._now) + US)


def one_by_one(jax, iterations=ITERATIONS, operations=OPERATIONS, library=UFUNC):
    for _ in range(iterations):
        for line in range(operations):
            jax.run(line + 1, library)


def as_one_function(jax):
    for _ in range(ITERATIONS):
        jax.run(1, JITTED, kernels=OPERATIONS)


def of_few_operations(jax):
    for _ in range(ITERATIONS):
        jax.run(1, JITTED)
        for line in range(2, 6):
            jax.run(line, UFUNC)


def of_functions_under_jit(jax):
    one_by_one(jax, library=JITTED)


def without_a_loop(jax):
    one_by_one(jax, iterations=1, operations=ITERATIONS * OPERATIONS)


def found(program, **options):
    jax = _Jax(**options)
    program(jax)
    recording = jax.recording()
    return [each for each in findings(recording, small=True) if each.rule == "R27"]


def duration_ns(program, **options):
    jax = _Jax(**options)
    program(jax)
    return jax.recording().duration_ns


def test_operations_of_a_loop_are_found_and_one_function_saves_what_was_predicted():
    (finding,) = found(one_by_one)

    measured = duration_ns(one_by_one) - duration_ns(as_one_function)
    assert finding.saved_ns == pytest.approx(measured, rel=0.2)
    assert finding.title == (
        "`step` runs 12 operations outside of `jax.jit` in each iteration; the GPU is busy for "
        "33 % of the time and waits for their launches."
    )
    assert finding.reason.startswith("In about 30 iterations, XLA runs each operation as an ")
    assert finding.change.startswith("Put the operations of an iteration into one function under")
    assert finding.certainty == "possible"


def test_operations_are_found_without_ranges_of_xla_that_ran_before_the_first_recording():
    (finding,) = found(one_by_one, has_ranges=False)

    (expected,) = found(one_by_one)
    assert finding.saved_ns == pytest.approx(expected.saved_ns, rel=0.05)
    assert finding.title == expected.title


def one_by_one_with_arguments(jax, size):
    for _ in range(ITERATIONS):
        for line in range(OPERATIONS):
            jax.copy(size)
            jax.run(line + 1, UFUNC)


@pytest.mark.parametrize("has_ranges", [True, False])
def test_copies_of_numbers_for_operations_are_saved_too(has_ranges):
    with_numbers = partial(one_by_one_with_arguments, size=4)
    (finding,) = found(with_numbers, has_ranges=has_ranges)

    measured = duration_ns(with_numbers) - duration_ns(as_one_function)
    assert finding.saved_ns == pytest.approx(measured, rel=0.2)
    assert all(line.source for line in finding.lines)


def test_operations_that_wait_for_copies_of_arrays_are_no_finding():
    assert found(partial(one_by_one_with_arguments, size=4096)) == []


def with_a_line_of_many(jax):
    """Run a dozen operations on one line, such as in the backward pass of `jax.grad`."""
    jax.run(99, UFUNC)
    for _ in range(ITERATIONS):
        for line in range(5):
            jax.run(line + 1, UFUNC)
        for _ in range(OPERATIONS):
            jax.run(50, UFUNC)


def test_a_line_may_run_several_operations_in_each_iteration():
    (finding,) = found(with_a_line_of_many)

    assert finding.title.startswith("`step` runs 17 operations outside of `jax.jit` in each ")


@pytest.mark.parametrize("has_ranges", [True, False])
@pytest.mark.parametrize(
    "program", [as_one_function, of_few_operations, of_functions_under_jit, without_a_loop]
)
def test_functions_under_jit_and_few_operations_beside_them_are_no_finding(program, has_ranges):
    assert found(program, has_ranges=has_ranges) == []


def test_operations_whose_kernels_hide_their_launches_are_no_finding():
    assert found(one_by_one, kernel_us=80) == []
