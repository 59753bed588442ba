"""R21: many small copies in a row."""

import pytest

from tests.unit.advice.timed_programs import found, saved_ns, small

ELEMENTS = 200


def to_host(gpu, *, elements=ELEMENTS, nbytes=8, kernel=False, host=10e-6):
    x = gpu.empty(nbytes)
    gpu.launch("compute", duration=1e-3, writes=[x])
    for _ in range(elements):
        gpu.copy_to_host(x)
        gpu.work_on_host(host)
        if kernel:
            gpu.launch("step", duration=5e-6, writes=[x])


def each_element(gpu):
    to_host(gpu)


def all_at_once(gpu):
    to_host(gpu, elements=1, nbytes=8 * ELEMENTS)


def small_arrays_to_device(gpu):
    arrays = [gpu.empty(1024) for _ in range(ELEMENTS)]
    for array in arrays:
        gpu.copy_to_device(array, pinned=True)
        gpu.work_on_host(10e-6)


def one_array_to_device(gpu):
    gpu.copy_to_device(gpu.empty(1024 * ELEMENTS), pinned=True)


def after_kernels(gpu):
    to_host(gpu, kernel=True)


def large(gpu):
    to_host(gpu, nbytes=1 << 20)


def few(gpu):
    to_host(gpu, elements=7)


def with_other_work(gpu):
    to_host(gpu, host=300e-6)


@pytest.mark.parametrize(
    ("program", "after", "title"),
    [
        (each_element, all_at_once, "`gpu.copy_to_host(x)` copies 1.56 KiB to the host in 200 "),
        (
            small_arrays_to_device,
            one_array_to_device,
            "`gpu.copy_to_device(array, pinned=True)` copies 200 KiB to the GPU in 200 ",
        ),
    ],
)
def test_pieces_are_found_and_one_copy_saves_what_was_predicted(program, after, title):
    (finding,) = found(program, "R21")

    assert finding.saved_ns == pytest.approx(saved_ns(program, after), rel=0.2)
    assert finding.title == f"{title}pieces."
    assert finding.reason.startswith(
        "The pieces follow each other without other work of the GPU between them, and take "
    )
    assert finding.change.startswith("Copy all of it at once: ")
    assert (finding.certainty, len(finding.evidence.rows)) == ("possible", ELEMENTS - 1)


def test_a_wait_for_earlier_work_is_not_the_time_of_the_pieces():
    def after_long_work(gpu):
        gpu.launch("long", duration=50e-3)
        each_element(gpu)

    (finding,), (other,) = small(after_long_work, "R21"), found(each_element, "R21")

    assert [each.amount for each in finding.lines] == [each.amount for each in other.lines]
    assert finding.saved_ns == pytest.approx(other.saved_ns, rel=0.01)
    assert finding.lines[0].amount == "2.99 ms"


@pytest.mark.parametrize("program", [after_kernels, large, few, with_other_work, all_at_once])
def test_separate_large_and_few_copies_are_no_finding(program):
    assert small(program, "R21") == []


def for_each_launch(gpu, uploads=ELEMENTS, *, kernel=2e-6, reads=False, nbytes=1024):
    """Upload the parameters of each launch, or take them from a table that is there."""
    x, parameters = gpu.empty(1024), gpu.empty(nbytes)
    for number in range(ELEMENTS):
        if number < uploads:
            gpu.work_on_host(10e-6)
            gpu.copy_to_device(parameters, pinned=True)
        gpu.work_on_host(5e-6 if number < uploads else 10e-6)  # a part of a table
        gpu.launch("bend", duration=kernel, reads=[parameters, x], writes=[x])
        if reads:
            gpu.copy_to_host(x)
    gpu.copy_to_host(x)


def parts_of_a_table(gpu):
    for_each_launch(gpu, uploads=0)


def of_what_was_read(gpu):
    for_each_launch(gpu, reads=True)


def beside_long_kernels(gpu):
    for_each_launch(gpu, kernel=1e-3)


def of_large_arrays(gpu):
    for_each_launch(gpu, nbytes=1 << 20)


def a_few_times(gpu):
    for_each_launch(gpu, uploads=50)


def test_an_upload_for_each_launch_is_found_and_a_table_saves_what_was_predicted():
    (finding,) = found(for_each_launch, "R21")

    assert finding.saved_ns == pytest.approx(saved_ns(for_each_launch, parts_of_a_table), rel=0.2)
    assert "copies 200 KiB to the GPU in 200 pieces, one after the other" in finding.title
    assert finding.certainty == "possible"
    assert small(parts_of_a_table, "R21") == []


@pytest.mark.parametrize(
    "program", [of_what_was_read, beside_long_kernels, of_large_arrays, a_few_times]
)
def test_uploads_that_may_depend_on_results_or_cost_little_are_no_finding(program):
    assert small(program, "R21") == []
