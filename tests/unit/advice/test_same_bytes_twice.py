"""R46: parts and the array that they were joined to."""

import pytest

from tests.unit.advice.programs import MIB, found, saved

JOIN, COPY = "cupy_concatenate_same_size", "cupy_copy__float32_float32"


def joins(*, parts=4, size=32 * MIB, again=False, name=JOIN):
    """Return a program that makes four parts of 8 MiB and joins them."""

    def program(gpu):
        made = []
        for _ in range(parts):
            part = gpu.empty(8 * MIB)
            gpu.launch("make", duration=1e-4, writes=[part])
            made.append(part)
        joined = gpu.empty(size)
        gpu.launch(name, duration=1e-4, writes=[joined])
        gpu.launch("read", duration=1e-4, reads=[joined, *made] if again else [joined])

    return program


def copies_each(*, parts=4, size=32 * MIB, again=False, by=COPY):
    """Return a program that joins large parts, each with a copy of its own."""

    def program(gpu):
        made = []
        for _ in range(parts):
            part = gpu.empty(8 * MIB)
            gpu.launch("make", duration=1e-4, writes=[part])
            made.append(part)
        joined = gpu.empty(size)
        for part in made:
            gpu.launch(by, duration=1e-4, reads=[part], writes=[joined])
        gpu.launch("read", duration=1e-4, reads=[joined, *made] if again else [joined])

    return program


def fills_slices(gpu):
    joined = gpu.empty(32 * MIB)
    for _ in range(4):
        gpu.launch("make", duration=1e-4, writes=[joined])
    gpu.launch("read", duration=1e-4, reads=[joined])


def copies_into_slices(gpu):
    joined = gpu.empty(32 * MIB)
    for _ in range(4):
        part = gpu.empty(8 * MIB)
        gpu.launch("make", duration=1e-4, writes=[part])
        gpu.launch(COPY, duration=1e-4, reads=[part], writes=[joined])
        del part
    gpu.launch("read", duration=1e-4, reads=[joined])


def test_parts_are_found_and_writing_into_slices_saves_what_was_predicted():
    (finding,) = found(joins(), "R46")

    assert finding.saved_bytes == saved(joins(), fills_slices) == 32 * MIB
    assert finding.title == "`joined = gpu.empty(size)` holds the same 32.0 MiB twice."
    assert finding.reason == (
        "It joins 4 arrays from `part = gpu.empty(8 * MIB)`, which nothing uses afterwards."
    )
    assert finding.change == (
        "Allocate the whole array first, and write each part into a slice of it."
    )
    assert found(fills_slices, "R46") == []


def test_large_parts_that_are_copied_one_by_one_are_found():
    (finding,) = found(copies_each(), "R46")

    assert finding.saved_bytes == saved(copies_each(), fills_slices) == 32 * MIB
    assert finding.reason.startswith("It joins 4 arrays from `part = gpu.empty(8 * MIB)`")


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(joins(again=True), id="parts are used later"),
        pytest.param(copies_each(again=True), id="copied parts are used later"),
        pytest.param(copies_each(size=64 * MIB), id="copies to a part of an array"),
        pytest.param(copies_each(by="cupy_add__float32_float32"), id="another function"),
        pytest.param(joins(size=16 * MIB), id="a part of the parts"),
        pytest.param(joins(parts=1, size=8 * MIB), id="a copy"),
        pytest.param(joins(name="scatter"), id="another kernel"),
        pytest.param(copies_into_slices, id="copies into an array that is there"),
    ],
)
def test_what_looks_alike_is_no_finding(program):
    assert found(program, "R46") == []


def joins_in_rounds(counts, *, again=(), one_by_one=False):
    """Return a program that joins so many parts in each round, which some rounds read again."""

    def program(gpu):
        for number, count in enumerate(counts):
            made = []
            for _ in range(count):
                part = gpu.empty(8 * MIB)
                gpu.launch("make", duration=1e-4, writes=[part])
                made.append(part)
            joined = gpu.empty(count * 8 * MIB)
            if one_by_one:
                for part in made:
                    gpu.launch(COPY, duration=1e-4, reads=[part], writes=[joined])
            else:
                gpu.launch(JOIN, duration=1e-4, writes=[joined])
            gpu.launch(
                "read", duration=1e-4, reads=[joined, *made] if number in again else [joined]
            )
            del made, part, joined

    return program


def fills_slices_in_rounds(counts):
    def program(gpu):
        for count in counts:
            joined = gpu.empty(count * 8 * MIB)
            for _ in range(count):
                gpu.launch("make", duration=1e-4, writes=[joined])
            gpu.launch("read", duration=1e-4, reads=[joined])
            del joined

    return program


@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize("counts", [(4, 4, 4), (4, 4, 3), (2, 4), (4, 2)])
def test_joins_of_each_round_are_one_finding_that_saves_what_was_predicted(counts, one_by_one):
    program = joins_in_rounds(counts, one_by_one=one_by_one)

    (finding,) = found(program, "R46")

    assert finding.saved_bytes == saved(program, fills_slices_in_rounds(counts)) == 32 * MIB
    assert finding.title == ("`joined = gpu.empty(count * 8 * MIB)` holds the same 32.0 MiB twice.")
    assert finding.reason.startswith("It joins 4 arrays from `part = gpu.empty(8 * MIB)`")


@pytest.mark.parametrize("again", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("one_by_one", [True, False])
def test_parts_that_a_round_reads_again_are_no_finding(again, one_by_one):
    assert found(joins_in_rounds((4, 4, 4), again=again, one_by_one=one_by_one), "R46") == []


def test_a_large_round_counts_though_a_small_one_reads_its_parts_again():
    program = joins_in_rounds((2, 6), again=(0,))

    (finding,) = found(program, "R46")

    assert finding.saved_bytes == saved(program, fills_slices_in_rounds((2, 6))) == 48 * MIB
