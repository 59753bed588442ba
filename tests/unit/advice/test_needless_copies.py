"""R46: copies by `cupy.array` of arrays that have the type already."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.training import installed

ROUNDS, SIZE = 10, 16 * MI
FILE = "cupy/_creation/from_data.py"


def _array(cp, array, order="K"):
    del order
    return cp.elementwise("copy", array)


def _converted(cp, array):
    return cp.astype(array, "float64")


array = installed(_array, FILE, "array")
contiguous = installed(_array, FILE, "ascontiguousarray")
converted = installed(_converted, FILE, "array")


def steps(cp, *, copies=True):
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        image = image * float(step)
        copied = array(cp, image) if copies else image
        total += copied
        del copied


def steps_with_copies_of_copies(cp):
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        image = image * float(step)
        copied = array(cp, array(cp, image))
        total += copied
        del copied


def changes_the_first_array_meanwhile(cp):
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        first = array(cp, image)
        copied = array(cp, first)
        image += float(step)
        total += copied


def changes_the_copy(cp):
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        copied = array(cp, image)
        copied += float(step)
        total += copied


def changes_the_array_meanwhile(cp):
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        copied = array(cp, image)
        image += float(step)
        total += copied


def makes_it_contiguous(cp):
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        image = image * float(step)
        copied = contiguous(cp, image)
        total += copied


def names_an_order(cp):
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        image = image * float(step)
        copied = array(cp, image, order="F")
        total += copied


def names_an_order_in_another_line(cp):
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        image = image * float(step)
        copied = array(
            cp,
            image,
            order="F",
        )
        total += copied


def can_go_back(cp):
    """No round of this run needs the copy, but another run can."""
    state = cp.uploaded(SIZE)
    for step in range(ROUNDS):
        backup = array(cp, state)
        state += float(step)
        float(state.sum())
        del backup


def keeps_each_state(cp):
    state, states = cp.uploaded(SIZE), []
    for step in range(ROUNDS):
        states.append(array(cp, state))
        state += float(step)


def changes_some_copies(cp):
    """Without the copy, each third round would change the image."""
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        image = image * float(step)
        copied = array(cp, image)
        if step % 3 == 0:
            copied += float(step)
        total += copied
        del copied


def converts(cp):
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE, "float64")
    for step in range(ROUNDS):
        image = image * float(step)
        copied = converted(cp, image)
        total += copied


def copies_a_few(cp):
    image, total = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(3):
        image = image * float(step)
        copied = array(cp, image)
        total += copied


def of_copies(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R46"]


def test_copies_that_could_be_what_they_are_made_of_are_found_and_save_what_was_predicted():
    before, after = (
        of_arrays(lambda cp, copies=copies: steps(cp, copies=copies)) for copies in (True, False)
    )
    (finding,) = of_copies(before)

    assert finding.title.endswith("copies 10 arrays that have the type already.")
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.05)
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    assert of_copies(after) == []


def test_a_copy_of_a_copy_could_be_the_first_array():
    before, after = (
        of_arrays(steps_with_copies_of_copies),
        of_arrays(lambda cp: steps(cp, copies=False)),
    )
    (finding,) = of_copies(before)

    assert finding.title.endswith("copies 20 arrays that have the type already.")
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes


def test_a_copy_of_a_copy_is_needed_if_the_first_array_changes_meanwhile():
    (finding,) = of_copies(of_arrays(changes_the_first_array_meanwhile))

    assert finding.title.endswith("copies 10 arrays that have the type already.")


@pytest.mark.parametrize(
    "program",
    [
        changes_the_copy,
        changes_the_array_meanwhile,
        makes_it_contiguous,
        names_an_order,
        names_an_order_in_another_line,
        can_go_back,
        keeps_each_state,
        changes_some_copies,
        converts,
        copies_a_few,
    ],
)
def test_copies_that_the_program_may_need_are_no_finding(program):
    assert of_copies(of_arrays(program)) == []
