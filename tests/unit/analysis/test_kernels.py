"""The kernel table, against plain Python and by hand."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.recording.from_activities import Timeline
from tests.unit.recording.plain_summary import activity_rows, floor_median, groups, typical

EXAMPLES = examples(20)
# The columns whose values a row has in common.
KEYS = {
    "name": ("name",),
    "name_and_line": ("name", "site"),
    "line": ("site",),
    "stack": ("stack",),
}


@st.composite
def any_kernels(draw):
    timeline = Timeline()
    lines = st.integers(1, 3)
    for correlation in range(1, draw(st.integers(1, 12))):
        time = draw(st.integers(0, 30))
        launch = (draw(st.integers(1, 2)), 32)
        columns = {"correlation": draw(st.sampled_from([0, correlation])), "launch": launch}
        length = draw(st.integers(-2, 9))
        timeline.kernel(time, time + length, draw(st.sampled_from("abc")), **columns)
        if draw(st.booleans()):
            begin, line = draw(st.integers(0, 30)), draw(st.none() | lines)
            columns = {"correlation": correlation, "line": line}
            timeline.call(begin, begin + 3, **columns, library=draw(st.sampled_from("xy")))
    timeline.copy(0, 5, correlation=1)
    return timeline.recording()


@EXAMPLES
@given(recording=any_kernels(), by=st.sampled_from(list(KEYS)))
def test_the_numbers_are_those_of_a_plain_account(recording, by):
    rows = activity_rows(recording, "kernel")
    whole = sum(row["length"] for row in rows)
    shapes = {row["id"]: row for row in recording.table("launch_configurations").to_pylist()}

    def key_of(row):
        return tuple(row[name] for name in KEYS[by])

    found = {key_of(row): row for row in recording.kernels(by).to_pylist()}

    expected = groups(rows, lambda row: key_of(row | {"name": row["text"]}))
    assert found.keys() == expected.keys()
    for key, group in expected.items():
        lengths = [row["length"] for row in group]
        delays = [max(0, row["time"] - row["call"]["end"]) for row in group if row["call"]]
        most = typical(group, lambda row: (row["text"], row["stack"], row["launch"]))
        shape = shapes[most["launch"]]
        assert found[key] == {
            "name": most["text"],
            **{name: most[name] for name in ("site", "source", "stack")},
            "module": "",
            "phase": "",
            "sites": [site for site, _ in Counter(row["site"] for row in group).most_common()],
            "count": len(group),
            "total_ns": sum(lengths),
            "median_ns": floor_median(lengths),
            "min_ns": min(lengths),
            "max_ns": max(lengths),
            "share": pytest.approx(sum(lengths) / whole if whole else 0),
            "launch_delay_ns": floor_median(delays),
            "grid": [shape[f"grid_{axis}"] for axis in "xyz"],
            "block": [shape[f"block_{axis}"] for axis in "xyz"],
        }


@EXAMPLES
@given(recording=any_kernels(), by=st.sampled_from(list(KEYS)))
def test_most_time_comes_first(recording, by):
    totals = recording.kernels(by)["total_ns"].to_pylist()

    assert totals == sorted(totals, reverse=True)


@pytest.mark.parametrize("by", KEYS)
def test_without_kernels_the_table_has_its_columns_and_no_rows(by):
    timeline = Timeline()
    timeline.kernel(0, 10)
    empty = Timeline().recording().kernels(by)

    assert empty.num_rows == 0
    assert empty.schema == timeline.recording().kernels(by).schema


def test_one_name_under_two_ids_is_one_row():
    timeline = Timeline()
    timeline.kernel(0, 10)
    timeline.kernel(20, 50)
    recording = timeline.recording()
    strings = recording.table("strings").to_pylist()
    rows = recording.table("activities").to_pylist()
    timeline.rows["activities"] = [rows[0], rows[1] | {"name": 99}]
    timeline.add("strings", {"id": 99, "text": strings[0]["text"]})

    (row,) = timeline.recording().kernels().to_pylist()

    assert (row["name"], row["count"], row["total_ns"]) == ("kernel", 2, 40)


def test_a_name_is_returned_as_it_is():
    timeline = Timeline()
    timeline.kernel(0, 10, "<script>alert(1)</script>\x00\n")

    assert timeline.recording().kernels()["name"].to_pylist() == ["<script>alert(1)</script>\x00\n"]


def test_a_kernel_of_unknown_launch_has_no_shape_and_no_delay():
    timeline = Timeline()
    timeline.activity("kernel", 5, 10, correlation=3)
    (row,) = timeline.recording().kernels().to_pylist()

    assert (row["name"], row["site"]) == ("", "(no call stack)")
    assert (row["grid"], row["block"], row["launch_delay_ns"]) == (None, None, None)


def test_an_unknown_by_is_refused_with_what_is_known():
    known = '"name", "name_and_line", "line", "stack" or "module"'
    with pytest.raises(ValueError, match=f"by must be {known}, got 'kind'"):
        Timeline().recording().kernels("kind")


def test_a_kernel_that_three_lines_launch_names_all_three():
    timeline = Timeline()
    for correlation, line in enumerate((4, 9, 9, 2), 1):
        timeline.call(correlation, correlation, line=line, correlation=correlation)
        timeline.kernel(10 * correlation, 10 * correlation + 5, correlation=correlation)

    (row,) = timeline.recording().kernels().to_pylist()

    assert row["site"] == "step (run.py:9)"
    assert row["sites"] == ["step (run.py:9)", "step (run.py:4)", "step (run.py:2)"]
