"""What the host did in idle time, against an account of each nanosecond."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.analysis.host_work import host_work
from tests.examples import examples
from tests.unit.recording.from_activities import Timeline

STATES = ("working", "waiting", "gil")


def add_sample(timeline, time, end, state="working", line=7, **columns):
    stack = timeline.stack(line, "wrap")
    row = {"time": time, "end": end, "state": state, "stack": stack, "thread": 1, "samples": 1}
    timeline.add("host_samples", row | columns)


def program():
    """Three kernels, launched by lines 1, 2 and 3 at 10, 100 and 200 µs, of one name."""
    timeline = Timeline()
    for number, time in enumerate((10_000, 100_000, 200_000), 1):
        timeline.call(time, time + 1000, correlation=number, line=number)
        timeline.kernel(time + 1000, time + 5000, correlation=number)
    return timeline


def times(recording):
    found = host_work(recording, 0)
    sums = Counter()
    for number, begin, end in zip(found.work, found.begin, found.end, strict=True):
        sums[found.works[number].kind] += int(end - begin)
    return dict(sums)


def test_samples_count_in_idle_time_only():
    timeline = program()
    add_sample(timeline, 5_000, 60_000)

    assert times(timeline.recording()) == {"working": 60_000 - 15_000}


def test_a_collection_counts_before_the_samples_around_it():
    timeline = program()
    add_sample(timeline, 20_000, 90_000)
    add_sample(timeline, 40_000, 50_000, "collection")

    assert times(timeline.recording()) == {"working": 60_000, "collection": 10_000}


def test_a_compilation_counts_before_both():
    timeline = program()
    add_sample(timeline, 20_000, 90_000)
    add_sample(timeline, 40_000, 50_000, "collection")
    name = timeline.text("kernel")
    row = {"id": 1, "time": 45_000, "end": 95_000, "kind": "compile", "name": name, "thread": 1}
    timeline.add("ranges", row)
    recording = timeline.recording(duration_ns=300_000)

    assert times(recording) == {"working": 20_000, "collection": 5_000, "compilation": 50_000}


def test_a_row_names_the_line_the_function_and_its_library():
    timeline = program()
    add_sample(timeline, 20_000, 90_000)
    (row,) = timeline.recording().host_work().to_pylist()

    assert (row["idle_ns"], row["count"], row["work"]) == (70_000, 1, "working")
    assert row["site"].endswith(":7)")
    assert row["function"] in row["text"]


def test_the_thread_that_has_the_gil_is_named():
    timeline = program()
    timeline.add("threads", {"id": 1, "name": "MainThread"})
    timeline.add("threads", {"id": 2, "name": "loader"})
    add_sample(timeline, 20_000, 90_000, "gil", holder=2)
    (row,) = timeline.recording().host_work().to_pylist()

    assert row["holder"] == "loader"
    assert row["text"].startswith("waiting for the GIL that thread loader holds in ")


def test_each_sample_has_a_text_also_while_the_gpu_works():
    timeline = program()
    add_sample(timeline, 11_500, 14_000)
    add_sample(timeline, 20_000, 60_000, "waiting")
    add_sample(timeline, 60_000, 90_000, "collection", line=8)
    texts = timeline.recording().derived["sampled_work"]["text"].to_pylist()

    assert texts == [
        "line 7 (wrap of wrap)",
        "waiting in line 7 (wrap of wrap)",
        "garbage collection in line 8 (wrap of wrap)",
    ]


def test_idle_time_belongs_to_the_line_that_ran_and_the_rest_to_the_one_that_launched():
    timeline = program()
    add_sample(timeline, 120_000, 180_000)
    idle = {row["site"]: row["idle_ns"] for row in timeline.recording().lines().to_pylist()}
    own = next(ns for site, ns in idle.items() if site.endswith(":7)"))
    launching = next(ns for site, ns in idle.items() if site.endswith(":3)"))

    assert own == 60_000
    assert launching == 201_000 - 105_000 - 60_000


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no device 3"):
        program().recording().host_work(3)


@st.composite
def any_samples(draw):
    """Return a program with samples that do not overlap, and collections that do not."""
    timeline = program()
    for states in (STATES, ("collection",)):
        edges = sorted(draw(st.sets(st.integers(0, 220), max_size=12)))
        for begin, end in zip(edges[::2], edges[1::2], strict=False):
            state = draw(st.sampled_from(states))
            add_sample(timeline, 1000 * begin, 1000 * end, state, draw(st.integers(1, 9)))
    return timeline.recording()


@given(any_samples())
@examples(60)
def test_each_nanosecond_of_idle_time_has_at_most_one_work(recording):
    rows = recording.table("host_samples").to_pylist()
    gaps = [row for row in recording.table("idle_gaps").to_pylist() if row["stream"] == 0]
    expected = Counter()
    for gap in (row for row in gaps if row["cause"] == "host"):
        for time in range(gap["time"], gap["end"], 1000):
            here = [row for row in rows if row["time"] <= time < row["end"]]
            states = [row["state"] for row in here]
            if states:
                expected["collection" if "collection" in states else states[0]] += 1000

    assert times(recording) == expected
