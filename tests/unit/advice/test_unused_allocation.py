"""R01: arrays that nothing uses."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import MIB, found, recorded, saved, within


def allocates(*, spare=True, fill=False, rounds=1, use=""):
    """Return a program that allocates two arrays and uses one of them."""

    def program(gpu):
        for _ in range(rounds):
            needed = gpu.empty(64 * MIB)
            if spare:
                other = gpu.empty(32 * MIB)
                if fill:
                    gpu.fill(other)
            gpu.launch("make", duration=1e-4, writes=[needed])
            if use == "copy":
                gpu.copy_to_host(other)
            if use == "unknown":
                gpu.launch("by_pointers", duration=1e-4)
                gpu.fill(other)
            gpu.launch("read", duration=1e-4, reads=[needed])
            other = needed = None

    return program


def test_an_unused_array_is_found_and_removing_it_saves_what_was_predicted():
    (finding,) = found(allocates(), "R01")

    assert finding.saved_bytes == saved(allocates(), allocates(spare=False)) == 32 * MIB
    assert finding.title == "32.0 MiB from one line is allocated, but nothing reads it."
    assert finding.reason == ("At most 64.0 MiB would be allocated at once, instead of 96.0 MiB.")
    assert finding.change == "Remove `other = gpu.empty(32 * MIB)`: nothing reads it."
    assert finding.certainty == "likely"
    assert found(allocates(spare=False), "R01") == []


def test_zeros_that_nothing_reads_are_unused():
    before, after = allocates(fill=True, rounds=3), allocates(rounds=3, spare=False)
    (finding,) = found(before, "R01")

    assert finding.saved_bytes == saved(before, after) == 32 * MIB
    assert [line.amount for line in finding.lines] == ["32.0 MiB in 1 array"]
    # Deleting it after its fill would save the same.
    shown = [each.rule for each in findings(recorded(before)) if each.saved_bytes]
    assert shown == ["R01"]


def columns(gpu, *, names="abcd"):
    table = {name: gpu.empty(16 * MIB) for name in names}
    for array in table.values():
        gpu.fill(array)
    for _ in range(3):
        result = gpu.empty(8 * MIB)
        gpu.launch("join", duration=1e-4, reads=[table["a"], table["b"]], writes=[result])


def test_arrays_of_a_line_that_nothing_reads_are_told_from_the_others():
    (finding,) = found(columns, "R01")

    assert finding.saved_bytes == saved(columns, lambda gpu: columns(gpu, names="ab")) == 32 * MIB
    assert finding.title == "32.0 MiB from one line is allocated, but nothing reads it."
    assert finding.change == (
        "Leave out 2 of the 4 arrays of `table = {name: gpu.empty(16 * MIB) for name in names}`: "
        "nothing reads them."
    )
    assert found(lambda gpu: columns(gpu, names="ab"), "R01") == []


def unread_in_the_largest_round(gpu):
    for use in (False, True):
        other = gpu.empty(32 * MIB)
        needed = gpu.empty(32 * MIB if use else 64 * MIB)
        gpu.launch("make", duration=1e-4, writes=[needed])
        if use:
            gpu.launch("read", duration=1e-4, reads=[other])
        del other, needed


def used_in_one_round(gpu):
    for use in (False, True):
        other = gpu.empty(32 * MIB)
        needed = gpu.empty(64 * MIB)
        gpu.launch("make", duration=1e-4, writes=[needed])
        if use:
            gpu.launch("read", duration=1e-4, reads=[other])
        del other, needed


def used_by_another_stream(gpu):
    other = gpu.empty(32 * MIB)
    needed = gpu.empty(64 * MIB)
    gpu.launch("make", duration=1e-4, writes=[needed])
    with gpu.Stream():
        gpu.fill(other)
    gpu.synchronize()


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(allocates(use="copy"), id="copied"),
        pytest.param(allocates(fill=True, use="unknown"), id="a kernel whose arrays are unknown"),
        used_in_one_round,
        unread_in_the_largest_round,
        used_by_another_stream,
    ],
)
def test_what_looks_alike_is_no_finding(program):
    assert found(program, "R01") == []


def test_an_array_that_the_recording_does_not_free_may_be_used_later():
    kept = []

    def program(gpu):
        kept.append(gpu.empty(32 * MIB))
        gpu.launch("make", duration=1e-4, writes=[gpu.empty(64 * MIB)])

    assert found(program, "R01") == []


def test_an_array_of_a_library_is_not_the_program_s_to_remove():
    plan = within(recorded(allocates()), "/python3.12/site-packages/cupy/fft/_fft.py")

    assert [each for each in findings(plan, small=True) if each.rule == "R01"] == []
