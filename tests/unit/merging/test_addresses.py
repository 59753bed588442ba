"""Ranges of addresses and ids of threads, each placed once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.data.manifest import Manifest
from gpuviz.errors import GpuvizError
from gpuviz.merging.addresses import AddressSpace
from gpuviz.merging.ids import FreeIds
from gpuviz.recording import Recording
from tests.unit.merging.processes_of_a_run import process
from tests.unit.recording.from_activities import rows_of

UNIT = 1 << 40


@st.composite
def ranges(draw):
    """Return ranges that touch, or miss each other by a byte, more often than by chance."""
    grain = draw(st.sampled_from([UNIT // 4, UNIT // 3, 1 << 20, UNIT]))
    lowest = draw(st.integers(0, 12)) * grain + draw(st.sampled_from([0, 1, 5]))
    length = draw(st.integers(0, 9)) * grain + draw(st.sampled_from([0, 1, UNIT - 2, UNIT - 1]))
    return lowest, lowest + length


@given(st.lists(ranges(), max_size=14))
def test_a_range_is_moved_by_the_least_that_parts_it_from_those_before(found):
    space, before = AddressSpace(), []
    for lowest, highest in found:
        expected = 0
        while any(low <= highest + expected and lowest + expected <= high for low, high in before):
            expected += UNIT
        before.append((lowest + expected, highest + expected))

        assert space.place(lowest, highest) == expected


@given(st.lists(st.integers(1, 9), max_size=9))
def test_a_taken_id_gives_way_to_the_next_free_one(wanted):
    ids, taken = FreeIds(9), set()
    for each in wanted:
        expected = each
        while expected in taken:
            expected = expected % 9 + 1
        taken.add(expected)

        assert ids.take(each) == expected


def allocating(number, address, size=512):
    """Return the recording of a process that allocates at an address."""
    event = {"action": "alloc", "address": address, "size": size, "device": 0}
    pinned = {"action": "alloc", "address": 1 << 30, "size": 512}
    tables = {
        "memory_events": rows_of("memory_events", [event]),
        "host_memory_events": rows_of("host_memory_events", [pinned]),
    }
    return process(Recording(tables, Manifest()), number)


@pytest.mark.parametrize("address", [2**57, 2**62, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("size", [512, 2**59])
def test_an_address_that_no_machine_has_stays_as_it_is(address, size):
    parts = [allocating(number, address, size) for number in range(3)]

    merged = gpuviz.merge(parts)

    assert merged.table("memory_events")["address"].to_pylist() == [address] * 3
    pinned = merged.table("host_memory_events")["address"].to_pylist()
    assert len(set(pinned)) == 3
    for each, place in zip(merged.processes, pinned, strict=True):
        assert each.recording.table("host_memory_events")["address"].to_pylist() == [place]


def test_ranges_that_do_not_fit_beside_each_other_are_refused():
    parts = [allocating(number, 2**57 - 1) for number in range(70)]

    with pytest.raises(GpuvizError, match="their addresses do not fit beside each other"):
        gpuviz.merge(parts)
