"""R03: arrays of several lines that are allocated for longer than they are used."""

from collections import deque
from functools import partial

import pytest

from tests.unit.advice.programs import MIB, found, saved

ARRAY = 16 * MIB


def all_at_once(gpu):
    a = gpu.empty(ARRAY)
    b = gpu.empty(ARRAY)
    c = gpu.empty(ARRAY)
    gpu.copy_to_device(a)
    gpu.copy_to_device(c)
    gpu.launch("first", duration=1e-3, reads=[a], writes=[b])
    gpu.launch("second", duration=1e-3, reads=[b], writes=[c])
    gpu.copy_to_host(c)


def one_after_the_other(gpu):
    a = gpu.empty(ARRAY)
    b = gpu.empty(ARRAY)
    gpu.copy_to_device(a)
    gpu.launch("first", duration=1e-3, reads=[a], writes=[b])
    del a
    c = gpu.empty(ARRAY)
    gpu.copy_to_device(c)
    gpu.launch("second", duration=1e-3, reads=[b], writes=[c])
    gpu.copy_to_host(c)


def all_needed(gpu):
    a = gpu.empty(ARRAY)
    b = gpu.empty(ARRAY)
    c = gpu.empty(ARRAY)
    gpu.copy_to_device(a)
    gpu.launch("first", duration=1e-3, reads=[a], writes=[b])
    gpu.launch("second", duration=1e-3, reads=[a, b], writes=[c])
    gpu.copy_to_host(c)


def several_streams(gpu):
    a = gpu.empty(ARRAY)
    b = gpu.empty(ARRAY)
    c = gpu.empty(ARRAY)
    with gpu.Stream():
        gpu.launch("first", duration=1e-3, reads=[a], writes=[b])
    gpu.launch("second", duration=1e-3, reads=[b], writes=[c])
    gpu.launch("third", duration=1e-3, reads=[b, c])
    gpu.synchronize()


def zeroed_early(gpu):
    total = gpu.empty(ARRAY)
    gpu.fill(total)
    parts = gpu.empty(4 * ARRAY)
    gpu.launch("parts", duration=1e-3, writes=[parts])
    part = gpu.empty(MIB)
    gpu.launch("reduce", duration=1e-3, reads=[parts], writes=[part])
    del parts
    gpu.launch("add", duration=1e-3, reads=[part], writes=[total])


def zeroed_late(gpu):
    parts = gpu.empty(4 * ARRAY)
    gpu.launch("parts", duration=1e-3, writes=[parts])
    part = gpu.empty(MIB)
    gpu.launch("reduce", duration=1e-3, reads=[parts], writes=[part])
    del parts
    total = gpu.empty(ARRAY)
    gpu.fill(total)
    gpu.launch("add", duration=1e-3, reads=[part], writes=[total])


def backs_up(gpu):
    x = gpu.empty(ARRAY)
    gpu.copy_to_device(x)
    backup = gpu.empty(ARRAY)
    gpu.copy(x, backup)
    gpu.launch("work", duration=1e-3, reads=[x], writes=[x])
    gpu.copy_to_host(x)


def does_not_back_up(gpu):
    x = gpu.empty(ARRAY)
    gpu.copy_to_device(x)
    gpu.launch("work", duration=1e-3, reads=[x], writes=[x])
    gpu.copy_to_host(x)


def restores(gpu):
    x = gpu.empty(ARRAY)
    gpu.copy_to_device(x)
    backup = gpu.empty(ARRAY)
    gpu.copy(x, backup)
    gpu.launch("work", duration=1e-3, reads=[x], writes=[x])
    gpu.copy(backup, x)
    gpu.copy_to_host(x)


def draws_in_a_loop(gpu, *, deletes=False):
    board = gpu.empty(ARRAY)
    for _ in range(5):
        r = gpu.empty(ARRAY)
        gpu.launch("black", duration=1e-3, reads=[r], writes=[board])
        if deletes:
            del r
        r = gpu.empty(ARRAY)
        gpu.launch("white", duration=1e-3, reads=[r], writes=[board])
        if deletes:
            del r


def test_of_the_arrays_of_a_loop_those_at_the_same_time_are_named():
    (finding,) = found(draws_in_a_loop, "R03")

    assert finding.title == "32.0 MiB from 2 lines is allocated for longer than it is used."
    assert "allocate" not in finding.change
    assert finding.saved_bytes == ARRAY
    assert finding.saved_bytes == saved(draws_in_a_loop, partial(draws_in_a_loop, deletes=True))


def fills_three_ahead(gpu, *, copying):
    ready = deque()
    for _ in range(12):
        while len(ready) < 3:
            with copying:
                batch = gpu.empty(ARRAY)
                gpu.copy_to_device(batch, pinned=True)
                ready.append((batch, copying.record()))
            del batch
        batch, filled = ready.popleft()
        gpu.null_stream.wait_event(filled)
        gpu.launch("train", duration=5e-3, reads=[batch])
        gpu.record_stream(batch, gpu.null_stream)
        del batch


def test_what_another_stream_fills_ahead_is_not_filled_later():
    (finding,) = found(lambda gpu: fills_three_ahead(gpu, copying=gpu.null_stream), "R03")

    assert "allocate and fill it right before" in finding.change
    assert (
        found(lambda gpu: fills_three_ahead(gpu, copying=gpu.Stream(non_blocking=True)), "R03")
        == []
    )


def breeds(gpu, *, deletes=False):
    """Half of the arrays are used no more while they are replaced."""
    arrays = [gpu.empty(ARRAY) for _ in range(6)]
    for _ in range(4):
        gpu.launch("compare", duration=1e-3, reads=arrays, writes=arrays)
        parents = arrays[:3]
        if deletes:
            del arrays
        children = [gpu.empty(ARRAY) for _ in parents]
        for parent, child in zip(parents, children, strict=True):
            gpu.launch("change", duration=1e-3, reads=[parent], writes=[child])
        arrays = parents + children
        del parents, children, parent, child


def test_of_a_list_that_is_used_in_part_each_array_is_deleted_by_itself():
    (finding,) = found(breeds, "R03")

    assert finding.saved_bytes == saved(breeds, partial(breeds, deletes=True)) == 3 * ARRAY
    assert (
        "`arrays = [gpu.empty(ARRAY) for _ in range(6)]`: delete each array, from lists too, after "
        'its last use, such as `gpu.launch("change", '
    ) in finding.change


def test_lines_that_only_together_lower_the_peak_are_found_and_save_what_was_predicted():
    (finding,) = found(all_at_once, "R03")

    assert finding.saved_bytes == saved(all_at_once, one_after_the_other) == ARRAY
    assert finding.further_bytes == ARRAY
    assert finding.title == "32.0 MiB from 2 lines is allocated for longer than it is used."
    assert finding.reason == ("At most 32.0 MiB would be allocated at once, instead of 48.0 MiB.")
    assert finding.change == (
        '`a = gpu.empty(ARRAY)`: delete it (`del`) after `gpu.launch("first", duration=1e-3, '
        "reads=[a], writes=[b])`. `c = gpu.empty(ARRAY)`: allocate and fill it right before "
        '`gpu.launch("second", duration=1e-3, reads=[b], writes=[c])`.'
    )
    assert finding.certainty == "possible"
    assert [line.source for line in finding.lines] == [
        "a = gpu.empty(ARRAY)",
        "c = gpu.empty(ARRAY)",
    ]


def test_an_array_that_is_zeroed_long_before_it_is_used_is_found():
    (finding,) = found(zeroed_early, "R03")

    assert finding.saved_bytes == saved(zeroed_early, zeroed_late) == ARRAY
    assert finding.title == "16.0 MiB from one line is allocated for longer than it is used."
    assert finding.change == (
        "`total = gpu.empty(ARRAY)`: allocate and fill it right before "
        '`gpu.launch("add", duration=1e-3, reads=[part], writes=[total])`.'
    )


def test_an_array_that_is_only_written_is_found():
    (finding,) = found(backs_up, "R01")

    assert finding.saved_bytes == saved(backs_up, does_not_back_up) == ARRAY
    assert finding.change == "Remove `backup = gpu.empty(ARRAY)`: nothing reads it."
    assert finding.certainty == "likely"


def test_an_array_that_is_not_filled_is_only_allocated_later():
    def program(gpu):
        a = gpu.empty(ARRAY)
        b = gpu.empty(ARRAY)
        c = gpu.empty(ARRAY)
        gpu.copy_to_device(a)
        gpu.launch("first", duration=1e-3, reads=[a], writes=[b])
        gpu.launch("second", duration=1e-3, reads=[b], writes=[c])
        gpu.copy_to_host(c)

    (finding,) = found(program, "R03")

    assert finding.change.endswith(
        "`c = gpu.empty(ARRAY)`: allocate it right before "
        '`gpu.launch("second", duration=1e-3, reads=[b], writes=[c])`.'
    )
    assert finding.certainty == "likely"


def test_an_array_in_the_middle_is_allocated_later_and_deleted_earlier():
    def program(gpu):
        arrays = {}
        arrays[0] = gpu.empty(ARRAY)
        arrays[1] = gpu.empty(ARRAY)
        arrays[2] = gpu.empty(ARRAY)
        gpu.launch("first", duration=1e-3, writes=[arrays[0]])
        gpu.launch("second", duration=1e-3, writes=[arrays[1]])
        gpu.launch("third", duration=1e-3, writes=[arrays[2]])

    (finding,) = found(program, "R03")

    assert (
        "`arrays[1] = gpu.empty(ARRAY)`: allocate it right before "
        '`gpu.launch("second", duration=1e-3, writes=[arrays[1]])` and delete it (`del`) after '
        '`gpu.launch("second", duration=1e-3, writes=[arrays[1]])`.'
    ) in finding.change


@pytest.mark.parametrize(
    "program", [one_after_the_other, all_needed, several_streams, zeroed_late, restores]
)
def test_arrays_that_are_needed_are_no_finding(program):
    assert found(program, "R03") == []


def test_an_array_without_a_use_that_needs_it_has_no_line_to_be_allocated_at():
    kept = []

    def program(gpu):
        image = gpu.empty(32 * MIB)
        gpu.copy_to_device(image)
        large = gpu.empty(64 * MIB)
        gpu.launch("work", duration=1e-4, writes=[large])
        del large
        kept.append(image)
        gpu.synchronize()

    assert found(program, "R03") == []


def makes_two(gpu, *, fixed=False):
    """Make an array that is used first and one that is used last in one line, or each in time."""
    if fixed:
        mask = gpu.empty(ARRAY)
    else:
        mask, result = gpu.empty(ARRAY), gpu.empty(ARRAY)
    large = gpu.empty(4 * ARRAY)
    gpu.launch("expand", duration=1e-3, reads=[mask], writes=[large])
    if fixed:
        del mask
        result = gpu.empty(ARRAY)
    gpu.launch("collapse", duration=1e-3, reads=[large], writes=[result])
    gpu.launch("scale", duration=1e-3, reads=[result], writes=[result])


def test_of_two_arrays_of_a_line_one_is_made_later_and_the_other_deleted_earlier():
    (finding,) = found(makes_two, "R03")

    assert finding.saved_bytes == saved(makes_two, partial(makes_two, fixed=True)) == ARRAY
    assert finding.change == (
        "`mask, result = gpu.empty(ARRAY), gpu.empty(ARRAY)`: allocate one array right before "
        '`gpu.launch("collapse", duration=1e-3, reads=[large], writes=[result])` and delete '
        'another (`del`) after `gpu.launch("expand", duration=1e-3, reads=[mask], writes=[large])`.'
    )
