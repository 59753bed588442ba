"""The levels of the peak of memory, from what one operation needs to what the device held."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from tests.examples import examples
from tests.unit.advice.programs import MIB, recorded
from tests.unit.report.recordings import make_recording

LEVELS = [
    "largest operation",
    "used arrays",
    "requested",
    "allocated",
    "active",
    "packed",
    "reserved",
    "device",
]


def by_level(recording, column="bytes"):
    rows = recording.peak_chain().to_pylist()
    return {row["level"]: row[column] for row in rows}


def multiplies(gpu):
    """Compute E = AB, F = CD and G = EF of MiB matrices, all allocated first and freed last."""
    a, b, c, d, e, f, g = (gpu.empty(MIB) for _ in range(7))
    gpu.launch("product", duration=1e-4, reads=[a, b], writes=[e])
    gpu.launch("product", duration=1e-4, reads=[c, d], writes=[f])
    gpu.launch("product", duration=1e-4, reads=[e, f], writes=[g])


def test_what_a_program_needs_is_less_than_what_it_requests():
    sizes = by_level(recorded(multiplies))

    assert list(sizes) == LEVELS
    assert sizes["largest operation"] == 3 * MIB
    assert sizes["used arrays"] == 4 * MIB
    assert sizes["requested"] == sizes["allocated"] == sizes["packed"] == 7 * MIB


def test_each_level_says_what_it_adds_and_who_is_responsible():
    recording = recorded(multiplies)
    rows = recording.peak_chain().to_pylist()
    added = by_level(recording, "added")
    responsible = by_level(recording, "responsible")

    assert (added["used arrays"], added["requested"], added["allocated"]) == (MIB, 3 * MIB, 0)
    assert [responsible[level] for level in LEVELS] == ["program"] * 3 + ["allocator"] * 4 + [
        "others"
    ]
    assert all(row["meaning"].endswith(".") for row in rows)


def test_rounding_waiting_frees_and_segments_are_apart():
    def program(gpu):
        odd = gpu.empty(MIB + 1)
        gpu.launch("write", duration=1e-4, writes=[odd])
        with gpu.Stream():
            gpu.launch("read", duration=10.0, reads=[odd])
        del odd
        even = gpu.empty(MIB)
        gpu.launch("write", duration=1e-4, writes=[even])

    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()
    sizes = by_level(recorder.recording)
    stats = recorder.recording.memory_stats()

    for level in ("requested", "allocated", "active", "reserved"):
        assert sizes[level] == stats[f"{level}_bytes.all.peak"]
    assert sizes["requested"] < sizes["allocated"] <= sizes["active"] < sizes["reserved"]


def test_what_was_not_recorded_is_unknown():
    chain = make_recording().peak_chain()
    unknown = [row["level"] for row in chain.to_pylist() if row["bytes"] is None]

    assert unknown[:2] == ["largest operation", "used arrays"]
    assert all(row["added"] is None for row in chain.to_pylist() if row["bytes"] is None)


def test_without_a_search_the_packing_is_unknown():
    rows = recorded(multiplies).peak_chain(seconds=None).to_pylist()

    assert [row["level"] for row in rows if row["bytes"] is None] == ["packed"]


def test_a_device_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="no device 7"):
        make_recording().peak_chain(7)


@given(
    st.lists(
        st.tuples(st.sampled_from(["make", "use", "delete"]), st.integers(0, 5), st.integers(0, 5)),
        max_size=40,
    )
)
@examples(30)
def test_levels_ascend_and_the_first_two_are_those_of_brute_force(steps):
    largest, held, uses = 0, {}, []

    def program(gpu):
        nonlocal largest
        for kind, one, two in steps:
            if kind == "make":
                held[one] = gpu.empty((two + 1) * 700)
                sizes[id(held[one])] = (two + 1) * 700
            elif kind == "delete":
                held.pop(one, None)
            elif one in held and two in held:
                gpu.launch("use", duration=1e-6, reads=[held[one]], writes=[held[two]])
                together = {one, two}
                largest = max(largest, sum(sizes[id(held[each])] for each in together))
                uses.append(together)
        held.clear()

    sizes = {}
    recording = recorded(program)
    if not recording.devices:
        return
    rows = recording.peak_chain(seconds=0).to_pylist()
    known = [row["bytes"] for row in rows if row["bytes"] is not None]

    assert known == sorted(known)
    if uses:
        assert rows[0]["bytes"] == largest
